//! What machines boot with: instances get only what they are made to run.

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use serde_json::json;

fn settled() -> (World, Fleet) {
    let mut world = World::new(4, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    (world, fleet)
}

#[test]
fn bootstrap_data_that_no_instance_would_run_is_refused() {
    for spec in [json!({}), json!({"cloudInit": {"insecureSkipSecretsManager": true}})] {
        let (mut world, mut fleet) = settled();
        fleet.add_machine("worker-0", false, spec);
        fleet.bootstrap_format = Some("ignition".into());
        let decision = fleet.decide_machine(&mut world, "worker-0");
        assert!(decision.plan.actions.is_empty() && decision.record.secret.is_none(), "{}", decision.plan);
        let said = decision.invalid.expect("it says why").to_string();
        let wanted = "Machine spec.bootstrap: bootstrap data has format ignition, which is not supported by cluster-operator; set \
                      spec.format of the KubeadmConfig to cloud-config, and use an image that runs cloud-init";
        assert_eq!(said, wanted);
        for format in [None, Some(""), Some("cloud-config")] {
            fleet.bootstrap_format = format.map(str::to_owned);
            let decision = fleet.decide_machine(&mut world, "worker-0");
            assert!(
                decision.invalid.is_none() && !decision.plan.actions.is_empty(),
                "{format:?}: {}",
                decision.plan
            );
        }
    }
}

#[test]
fn an_instance_stays_whatever_its_bootstrap_data_is_for() {
    let (mut world, mut fleet) = settled();
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    fleet.bootstrap_format = Some("ignition".into());
    assert!(fleet.reconcile_machines(&mut world));
    assert_eq!(world.truth.instances[0].status.state, "running");
}
