//! What Calico's plugin makes of the pools and the machines that are there: which names and blocks pools get,
//! what of them cannot be changed, and when packets with addresses of Pods may be sent. Through the real host
//! call.

mod common;

use common::plans::{complete, outline, refused};
use common::{and_fact, request, with_fact};
use contract::{FactValue, Request, Severity};
use expect_test::expect;
use serde_json::{Value, json};

/// A request for a cluster with these addresses of Pods.
fn of_pods(config: Value, cidrs: &[&str]) -> Request {
    let cluster = json!({
        "name": "prod", "namespace": "default", "podCIDRs": cidrs, "serviceCIDRs": [],
        "controlPlaneEndpoint": { "host": "h", "port": 6443 },
    });
    with_fact(request(config), "cluster", FactValue::Present(cluster))
}

/// The same where these pools are there: name, CIDR, length of blocks, and whether the operator made them.
fn with_pools(request: Request, pools: &[(&str, &str, u8, bool)]) -> Request {
    let pool = |(name, cidr, block_size, managed): &(&str, &str, u8, bool)| json!({ "name": name, "cidr": cidr, "blockSize": block_size, "managed": managed });
    let pools: Vec<Value> = pools.iter().map(pool).collect();
    and_fact(request, "ip-pools", FactValue::Present(json!(pools)))
}

/// Name, CIDR and length of blocks of the pools of a plan.
fn pools(request: &Request) -> String {
    let plan = complete("calico", request);
    let installation =
        plan.steps.iter().find(|step| step.id == "installation").expect("there is an installation");
    let pools =
        installation.spec["objects"][0]["spec"]["calicoNetwork"]["ipPools"].as_array().expect("it has pools");
    let line = |it: &Value| {
        format!(
            "{} {} {}",
            it["name"].as_str().unwrap_or_default(),
            it["cidr"].as_str().unwrap_or_default(),
            it["blockSize"]
        )
    };
    pools.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn pools_have_the_names_and_blocks_that_the_operator_gives_them() {
    assert_eq!(pools(&of_pods(json!({}), &["192.168.0.0/16"])), "default-ipv4-ippool 192.168.0.0/16 26");
    assert_eq!(
        pools(&of_pods(json!({}), &["10.0.0.0/27"])),
        "default-ipv4-ippool 10.0.0.0/27 27",
        "blocks fit into a small pool"
    );
    assert_eq!(
        pools(&of_pods(json!({ "blockSize": 24 }), &["10.0.0.0/16"])),
        "default-ipv4-ippool 10.0.0.0/16 24"
    );
    let two = ["192.168.1.0/16", "10.0.0.0/20"];
    assert_eq!(
        pools(&of_pods(json!({}), &two)),
        "192.168.0.0-16 192.168.1.0/16 26; 10.0.0.0-20 10.0.0.0/20 26"
    );
}

#[test]
fn pools_that_are_there_keep_name_and_blocks_when_others_are_added() {
    let there = [("default-ipv4-ippool", "192.168.0.0/16", 28, true), ("own", "172.16.0.0/16", 29, false)];
    let added = with_pools(of_pods(json!({}), &["192.168.0.0/16", "10.0.0.0/20"]), &there);
    assert_eq!(pools(&added), "default-ipv4-ippool 192.168.0.0/16 28; 10.0.0.0-20 10.0.0.0/20 26");
}

#[test]
fn what_is_there_is_planned_as_it_was_before_it_was_there() {
    let before = of_pods(json!({}), &["192.168.0.0/16"]);
    let there = with_pools(before.clone(), &[("default-ipv4-ippool", "192.168.0.0/16", 26, true)]);
    assert_eq!(complete("calico", &there), complete("calico", &before));
    let absent = and_fact(before.clone(), "ip-pools", FactValue::Absent);
    assert_eq!(complete("calico", &absent), complete("calico", &before));
}

#[test]
fn pools_in_use_are_not_moved_and_their_blocks_not_changed() {
    let there = [("default-ipv4-ippool", "192.168.0.0/16", 26, true)];
    refused(
        "calico",
        &with_pools(of_pods(json!({}), &["10.0.0.0/16"]), &there),
        expect![[r#"
            unsupported PodCIDRChanged: Pods have addresses of 192.168.0.0/16 (IPPool default-ipv4-ippool), which Cluster prod does not have in spec.clusterNetwork.pods.cidrBlocks any more; put it back: the addresses of a cluster that lives can be added to, not moved
        "#]],
    );
    refused(
        "calico",
        &with_pools(of_pods(json!({ "blockSize": 28 }), &["192.168.0.0/16"]), &there),
        expect![[r#"
            invalid BlockSize /blockSize: cannot be changed: nodes have blocks of /26 of pool default-ipv4-ippool, which has addresses in use; set it to 26
        "#]],
    );
    let of_others = [("own", "172.16.0.0/16", 26, false)];
    assert_eq!(
        pools(&with_pools(of_pods(json!({}), &["10.0.0.0/16"]), &of_others)),
        "default-ipv4-ippool 10.0.0.0/16 26"
    );
    refused(
        "calico",
        &of_pods(json!({ "blockSize": 26 }), &["10.0.0.0/27"]),
        expect![[r#"
            invalid BlockSize /blockSize: must be at least 27: the Cluster's Pod CIDR 10.0.0.0/27 is smaller than such a block
        "#]],
    );
}

#[test]
fn pools_that_could_not_be_read_are_not_taken_for_none() {
    let unknown = || FactValue::Unknown("the API server does not answer".to_owned());
    let request = and_fact(request(json!({})), "ip-pools", unknown());
    refused(
        "calico",
        &request,
        expect![[r#"
            pending FactUnknown: waiting for fact ip-pools: the API server does not answer
        "#]],
    );
    // Nothing is applied then, and its rules are needed.
    complete("calico", &with_fact(request, "installed", unknown()));
}

#[test]
fn addresses_of_pods_are_needed_and_of_ipv4() {
    refused(
        "calico",
        &of_pods(json!({}), &[]),
        expect![[r#"
            unsupported NoPodCIDR: Cluster prod has no spec.clusterNetwork.pods.cidrBlocks, from which Calico takes the addresses of Pods
        "#]],
    );
    refused(
        "calico",
        &of_pods(json!({}), &["fd00::/48"]),
        expect![[r#"
            unsupported UnsupportedPodCIDR: the Cluster's Pod CIDR fd00::/48 is not an IPv4 CIDR block
        "#]],
    );
}

#[test]
fn whoever_runs_calico_with_an_untested_kubernetes_is_told() {
    let of = |version: FactValue| with_fact(request(json!({})), "kubernetes-version", version);
    for version in ["v1.34.0", "v1.36.9"] {
        assert_eq!(complete("calico", &of(FactValue::Present(json!(version)))).diagnostics, [], "{version}");
    }
    assert_eq!(complete("calico", &of(FactValue::Unknown("it was not read".into()))).diagnostics, []);
    for version in ["v1.33.4", "v1.37.0"] {
        let told: Vec<_> = complete("calico", &of(FactValue::Present(json!(version))))
            .diagnostics
            .into_iter()
            .map(|it| (it.severity, it.code))
            .collect();
        assert_eq!(told, [(Severity::Warning, "UntestedKubernetesVersion".to_owned())], "{version}");
    }
}

#[test]
fn without_encapsulation_all_machines_are_in_one_subnet() {
    let none = json!({ "encapsulation": "None", "sourceDestinationCheck": "Disable" });
    let subnets = |config: &Value, ids: &[&str]| {
        and_fact(request(config.clone()), "machine-subnets", FactValue::Present(json!(ids)))
    };
    complete("calico", &subnets(&none, &[]));
    complete("calico", &subnets(&none, &["subnet-1"]));
    refused(
        "calico",
        &subnets(&none, &["subnet-1", "subnet-2"]),
        expect![[r#"
            invalid SeveralSubnets /encapsulation: the machines of the cluster are in 2 subnets (subnet-1, subnet-2), and between subnets the VPC drops packets with addresses of Pods; put all machines into one subnet, or use VXLANCrossSubnet, VXLAN or IPIP
        "#]],
    );
    complete(
        "calico",
        &subnets(
            &json!({ "encapsulation": "VXLANCrossSubnet", "sourceDestinationCheck": "Disable" }),
            &["subnet-1", "subnet-2"],
        ),
    );
}

#[test]
fn who_turns_off_the_source_destination_check_is_said() {
    let of = |encapsulation: &str, check: Option<&str>| {
        let mut config = json!({ "encapsulation": encapsulation });
        if let Some(check) = check {
            config["sourceDestinationCheck"] = check.into();
        }
        request(config)
    };
    for encapsulation in ["VXLANCrossSubnet", "None"] {
        refused(
            "calico",
            &of(encapsulation, None),
            expect![[r#"
                invalid SourceDestinationCheck /sourceDestinationCheck: must say who turns EC2's source/destination check off, which drops packets with addresses of Pods: Disable (calico-node does, for which the roles of all instances need ec2:DescribeInstances and ec2:ModifyNetworkInterfaceAttribute) or DoNothing (you do, on every instance)
            "#]],
        );
        refused(
            "calico",
            &of(encapsulation, Some("Enable")),
            expect![[r#"
                invalid SourceDestinationCheck /sourceDestinationCheck: cannot be Enable with this encapsulation: EC2 would drop packets with addresses of Pods
            "#]],
        );
        let said = |request: &Request| {
            complete("calico", request).diagnostics.into_iter().map(|it| it.severity).collect::<Vec<_>>()
        };
        assert_eq!(said(&of(encapsulation, Some("DoNothing"))), [Severity::Warning]);
        assert_eq!(said(&of(encapsulation, Some("Disable"))), []);
        // Whoever chose this before was told to turn it off.
        let before = |before: &str| Request {
            previous_config: Some(json!({ "encapsulation": before })),
            ..of(encapsulation, None)
        };
        assert_eq!(said(&before(encapsulation)), [Severity::Warning]);
        assert!(common::plans::plan("calico", &before("VXLAN")).is_err());
    }
    for encapsulation in ["VXLAN", "IPIP"] {
        assert_eq!(complete("calico", &of(encapsulation, None)).diagnostics, []);
    }
}

#[test]
fn the_installation_waits_for_what_calico_node_reads() {
    let plan = complete("calico", &request(json!({ "sourceDestinationCheck": "Enable" })));
    let steps: Vec<_> = plan
        .steps
        .into_iter()
        .filter(|it| !it.id.starts_with("sg-"))
        .map(|mut it| {
            it.after.retain(|it| !it.starts_with("sg-"));
            it
        })
        .collect();
    expect![[r#"
        operator (k8s.apply/v1)
        operator-available (k8s.wait/v1) after operator
        installation-crd (k8s.wait/v1) after operator
        apiserver-crd (k8s.wait/v1) after operator
        felix-crd (k8s.wait/v1) after operator
        felix-rights (aws.instance-roles/v1)
        felix (k8s.apply/v1) after felix-crd, felix-rights
        installation (k8s.apply/v1) after installation-crd, felix
        apiserver (k8s.apply/v1) after installation, apiserver-crd
        calico-available (k8s.wait/v1) after installation, apiserver
        ippools-available (k8s.wait/v1) after installation, apiserver
        apiserver-available (k8s.wait/v1) after installation, apiserver
        tiers-available (k8s.wait/v1) after installation, apiserver
    "#]]
    .assert_eq(&outline(&steps));
}

#[test]
fn typha_always_tolerates_what_keeps_nodes_from_being_ready() {
    let spec = |config: Value| {
        let plan = complete("calico", &request(config));
        plan.steps.iter().find(|step| step.id == "installation").expect("there is an installation").spec["objects"][0]["spec"].clone()
    };
    let tolerations = spec(
        json!({ "controlPlaneTolerations": [{ "key": "dedicated", "operator": "Exists" }] }),
    )["controlPlaneTolerations"]
        .clone();
    let keys: Vec<_> = tolerations
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["key"].as_str().unwrap_or_default())
        .collect();
    let own = ["CriticalAddonsOnly", "node-role.kubernetes.io/control-plane"];
    let starting = ["not-ready", "network-unavailable"].map(|it| format!("node.kubernetes.io/{it}"));
    let starting = [starting[0].as_str(), &starting[1], "node.cloudprovider.kubernetes.io/uninitialized"];
    assert_eq!(keys, [&own[..], &starting, &["dedicated"]].concat());
    // Given none, the operator knows best.
    assert_eq!(spec(json!({}))["controlPlaneTolerations"], Value::Null);
}

#[test]
fn calico_node_is_told_only_what_is_set() {
    let felix = |config: Value| {
        let plan = complete("calico", &request(config));
        plan.steps.iter().find(|step| step.id == "felix").map(|step| step.spec["objects"][0]["spec"].clone())
    };
    assert_eq!(felix(json!({})), None);
    assert_eq!(felix(json!({ "logLevel": "Info" })), Some(json!({ "logSeverityScreen": "Info" })));
    let both = json!({ "logLevel": "Debug", "sourceDestinationCheck": "DoNothing" });
    assert_eq!(felix(both), Some(json!({ "awsSrcDstCheck": "DoNothing", "logSeverityScreen": "Debug" })));
}
