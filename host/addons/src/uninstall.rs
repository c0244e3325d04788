//! What becomes of an add-on that is installed in a cluster that lives, and that nobody asks for any
//! more. Nothing that runs is stranded: cloud provider and networking stay, storage and ingress go when
//! nothing uses them.

use super::load_balancer_users::listed;
use super::{DesiredAddOn, Inventory, Slot};

/// What becomes of an add-on that nobody asks for any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// It stays; why, and what the user can do.
    Keep(String),
    /// It stays as long as this is there; what, and what the user can do.
    InUse(String),
    /// Its removal may be carried out.
    Remove,
}

/// Installed add-ons that nobody asks for any more and that this program knows, in the order in which they
/// go.
pub fn leftovers<'a>(installed: &'a [Inventory], desired: &[DesiredAddOn]) -> Vec<(Slot, &'a Inventory)> {
    let is_wanted = |it: &&Inventory| desired.iter().any(|desired| desired.module == it.module);
    let known = installed.iter().filter(|it| !is_wanted(it)).filter_map(|it| Some((it.slot()?, it)));
    let mut res: Vec<_> = known.collect();
    res.sort_by(|(one, first), (other, second)| {
        other.cmp(one).then_with(|| first.module.cmp(&second.module))
    });
    res
}

/// Decides about an installed add-on that is not among `wanted`; that is `None` when the ClusterPlugin is
/// being deleted. `users` is what needs the add-on.
pub fn leftover(
    installed: &Inventory,
    slot: Slot,
    desired: Option<&[DesiredAddOn]>,
    users: &[String],
) -> Leftover {
    let (module, path) = (&installed.module, installed.path());
    let again = match desired {
        Some(_) => format!("set {path} again, or delete the Cluster"),
        None => "a new ClusterPlugin of the Cluster finds it".to_owned(),
    };
    let rescue = match desired {
        Some(_) => format!("when {path} is set again"),
        None => "when spec.deletion.onPluginDelete is set to Keep".to_owned(),
    };
    let other = desired.unwrap_or_default().iter().find(|it| it.slot == slot);
    match slot {
        Slot::CloudProvider if other.is_none() => Leftover::Keep(format!(
            "{module} stays: without a cloud provider no new Node of a cluster that lives would ever be \
             complete; {again}"
        )),
        Slot::CloudProvider | Slot::Networking => match other {
            Some(other) => Leftover::Keep(switching(installed, slot, other)),
            None => Leftover::Keep(format!(
                "{module} stays: without it the Pods of a cluster that lives could not talk; {again}"
            )),
        },
        Slot::Storage | Slot::Ingress | Slot::Other if !users.is_empty() => Leftover::InUse(format!(
            "{module} is used by {}; it is removed when they are gone, or stays {rescue}",
            listed(users)
        )),
        Slot::Storage | Slot::Ingress | Slot::Other => Leftover::Remove,
    }
}

/// Why an add-on cannot be installed beside what is: another one has its place and does not leave.
pub fn in_the_way(desired: &DesiredAddOn, installed: &[Inventory]) -> Option<String> {
    let is_alone = matches!(desired.slot, Slot::CloudProvider | Slot::Networking);
    if !is_alone || installed.iter().any(|it| it.module == desired.module) {
        return None;
    }
    let old = installed.iter().find(|it| it.slot() == Some(desired.slot))?;
    Some(switching(old, desired.slot, desired))
}

fn switching(old: &Inventory, slot: Slot, new: &DesiredAddOn) -> String {
    let what = if slot == Slot::CloudProvider { "cloud provider" } else { "network" };
    format!(
        "{} stays and {} is not installed: the {what} of a cluster that lives cannot be switched; set {} \
         again, or make a new cluster with {}",
        old.module,
        new.module,
        old.path(),
        new.path
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Registered, Standing, desired};

    fn asked(spec: serde_json::Value) -> Vec<DesiredAddOn> {
        let mut all = json!({"clusterName": "prod"});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        desired(&serde_json::from_value(all).unwrap())
    }

    fn all() -> Vec<DesiredAddOn> {
        let rest = json!({"storage": {"ebs": {}, "efs": {}}, "ingress": {"awsLoadBalancerController": {}}, "networking": {"calico": {}}});
        asked(rest).into_iter().chain(asked(json!({"networking": {"amazonVPC": {}}}))).collect()
    }

    fn installed(modules: &[&str]) -> Vec<Inventory> {
        modules.iter().map(|it| one(it)).collect()
    }

    fn one(module: &str) -> Inventory {
        Inventory {
            module: module.into(),
            registered: None,
            version: String::new(),
            digest: String::new(),
            config: json!({}),
            plan_hash: String::new(),
            complete: true,
            objects: vec![],
            marks: vec![],
            rules: vec![],
            removal: vec![],
            allowed: None,
            stored_plan: None,
            previous: None,
            undone: None,
            approved: None,
            outputs: BTreeMap::new(),
            standing: Standing::Proven,
        }
    }

    #[test]
    fn every_plugin_that_can_be_asked_for_is_known_by_slot_and_path() {
        for it in all() {
            let record = one(&it.module);
            assert_eq!((record.slot(), record.path()), (Some(it.slot), it.path.as_str()));
        }
        assert_eq!(one("acme-metrics").slot(), None);
    }

    #[test]
    fn what_is_not_asked_for_is_found_in_the_order_in_which_it_goes() {
        let modules = [
            "aws-cloud-controller-manager",
            "calico",
            "aws-efs-csi",
            "aws-ebs-csi",
            "aws-load-balancer-controller",
            "acme",
        ];
        let installed = installed(&modules);
        let left = |desired: &[DesiredAddOn]| {
            leftovers(&installed, desired).iter().map(|it| it.1.module.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            left(&[]),
            "aws-load-balancer-controller aws-ebs-csi aws-efs-csi calico aws-cloud-controller-manager"
        );
        assert_eq!(
            left(&asked(json!({"networking": {"calico": {}}, "storage": {"ebs": {}}}))),
            "aws-load-balancer-controller aws-efs-csi"
        );
        assert_eq!(left(&all()), "");
    }

    #[test]
    fn what_a_module_installed_goes_as_its_slot_does() {
        let module = |slot: Slot| {
            let registered = Some(Registered { module: "acme".into(), slot });
            Inventory { registered, ..one("acme") }
        };
        let all = [Slot::Networking, Slot::Storage, Slot::Other].map(module);
        let order: Vec<Slot> = leftovers(&all, &[]).iter().map(|it| it.0).collect();
        assert_eq!(order, [Slot::Other, Slot::Storage, Slot::Networking]);
        assert_eq!(leftover(&all[2], Slot::Other, Some(&[]), &[]), Leftover::Remove);
        let calico = asked(json!({"networking": {"calico": {}}}));
        let calico = calico.into_iter().find(|it| it.slot == Slot::Networking).expect("a network");
        expect_test::expect![
            "acme stays and calico is not installed: the network of a cluster that lives cannot be switched; set spec.networking.module again, or make a new cluster with spec.networking.calico"
        ]
        .assert_eq(&in_the_way(&calico, &all).expect("it is in the way"));
    }

    #[test]
    fn what_runs_is_not_stranded() {
        let used = ["PersistentVolume a (vol-1)".to_owned()];
        let vpc = asked(json!({"networking": {"amazonVPC": {}}}));
        let cases = [
            leftover(&one("aws-cloud-controller-manager"), Slot::CloudProvider, Some(&[]), &[]),
            leftover(&one("calico"), Slot::Networking, Some(&[]), &[]),
            leftover(&one("calico"), Slot::Networking, None, &[]),
            leftover(&one("calico"), Slot::Networking, Some(&vpc), &[]),
            leftover(&one("aws-ebs-csi"), Slot::Storage, Some(&[]), &used),
            leftover(&one("aws-ebs-csi"), Slot::Storage, None, &used),
            leftover(&one("aws-ebs-csi"), Slot::Storage, Some(&[]), &[]),
            leftover(
                &one("aws-load-balancer-controller"),
                Slot::Ingress,
                Some(&[]),
                &["Ingress shop/web".to_owned()],
            ),
            leftover(&one("aws-load-balancer-controller"), Slot::Ingress, None, &[]),
        ];
        let text: Vec<String> = cases.iter().map(|it| format!("{it:?}")).collect();
        expect_test::expect![[r#"
            Keep("aws-cloud-controller-manager stays: without a cloud provider no new Node of a cluster that lives would ever be complete; set spec.cloudProvider.aws again, or delete the Cluster")
            Keep("calico stays: without it the Pods of a cluster that lives could not talk; set spec.networking.calico again, or delete the Cluster")
            Keep("calico stays: without it the Pods of a cluster that lives could not talk; a new ClusterPlugin of the Cluster finds it")
            Keep("calico stays and aws-vpc-cni is not installed: the network of a cluster that lives cannot be switched; set spec.networking.calico again, or make a new cluster with spec.networking.amazonVPC")
            InUse("aws-ebs-csi is used by PersistentVolume a (vol-1); it is removed when they are gone, or stays when spec.storage.ebs is set again")
            InUse("aws-ebs-csi is used by PersistentVolume a (vol-1); it is removed when they are gone, or stays when spec.deletion.onPluginDelete is set to Keep")
            Remove
            InUse("aws-load-balancer-controller is used by Ingress shop/web; it is removed when they are gone, or stays when spec.ingress.awsLoadBalancerController is set again")
            Remove"#]].assert_eq(&text.join("\n"));
    }

    #[test]
    fn a_network_is_not_installed_beside_another() {
        let vpc = &asked(json!({"cloudProvider": {"none": {}}, "networking": {"amazonVPC": {}}}))[0];
        let why = in_the_way(vpc, &installed(&["calico"])).unwrap();
        assert!(why.starts_with("calico stays and aws-vpc-cni is not installed"), "{why}");
        assert_eq!(in_the_way(vpc, &installed(&["aws-ebs-csi"])), None);
        assert_eq!(in_the_way(vpc, &installed(&["aws-vpc-cni"])), None);
        let ebs = &asked(json!({"cloudProvider": {"none": {}}, "storage": {"ebs": {}}}))[0];
        assert_eq!(in_the_way(ebs, &installed(&["aws-efs-csi", "calico"])), None);
    }
}
