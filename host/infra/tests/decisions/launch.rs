//! What instances are launched with.

use crate::world::driver::settled;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_machine_gets_the_metadata_service_that_it_asks_for() {
    let (mut world, mut fleet) = settled(json!({}));
    let options =
        json!({"httpProtocolIpv6": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2});
    fleet.add_machine(
        "worker-0",
        false,
        json!({"cloudInit": {"insecureSkipSecretsManager": true}, "instanceMetadataOptions": options}),
    );
    let decision = fleet.decide_machine(&mut world, "worker-0");
    let model::Resource::Instance(instance) = &decision.desired[&model::Instance::key("worker-0")].is else {
        panic!("no instance")
    };
    expect![[r#"
        {
          "httpEndpoint": "enabled",
          "httpProtocolIpv6": "enabled",
          "httpTokens": "required",
          "httpPutResponseHopLimit": 2,
          "instanceMetadataTags": "disabled"
        }"#]]
    .assert_eq(
        &serde_json::to_string_pretty(&instance.launch.as_ref().expect("what to launch").metadata_options)
            .expect("JSON"),
    );
}

#[test]
fn a_volume_with_a_key_is_encrypted_whatever_is_said_besides() {
    let (mut world, mut fleet) = settled(json!({}));
    let others = json!([
        {"deviceName": "/dev/sdb", "size": 8, "encrypted": false, "encryptionKey": "key-b"},
        {"deviceName": "/dev/sdc", "size": 8, "encrypted": false},
        {"deviceName": "/dev/sdd", "size": 8},
    ]);
    let spec = json!({
        "cloudInit": {"insecureSkipSecretsManager": true}, "rootVolume": {"size": 8, "encryptionKey": "key-a"}, "nonRootVolumes": others,
    });
    fleet.add_machine("worker-0", false, spec);
    let decision = fleet.decide_machine(&mut world, "worker-0");
    let model::Resource::Instance(instance) = &decision.desired[&model::Instance::key("worker-0")].is else {
        panic!("no instance")
    };
    let volumes = &instance.launch.as_ref().expect("what to launch").volumes;
    let asked_for: Vec<_> =
        volumes.iter().map(|it| (it.device_name.as_str(), it.encrypted, it.kms_key.as_deref())).collect();
    let expected = [
        ("/dev/sda1", Some(true), Some("key-a")),
        ("/dev/sdb", Some(true), Some("key-b")),
        ("/dev/sdc", Some(false), None),
        ("/dev/sdd", None, None),
    ];
    assert_eq!(asked_for, expected);
}
