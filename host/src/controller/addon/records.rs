//! Records of add-ons in a workload cluster, and the digests by which the management cluster knows them: both
//! are written here, in an order that no crash confuses. What follows from a record is decided in `addons`.

use addons::{
    DesiredAddOn, Inventory, Proofs, RECORDS_ANNOTATION, STORED_RULES_ANNOTATION, Standing, digest,
    in_the_way, rules_of_installed, stored_rules,
};
use crds::AWSCluster;
use crds::cluster_plugin::ClusterPlugin;
use kube::ResourceExt;
use model::AddOnRule;
use serde_json::json;

use super::AddOns;
use super::progress::StepProgress;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::rules::{RequestedRules, requested_rules};
use crate::workload::{StoredRecord, WorkloadCluster};

/// What is installed in a workload cluster, by the records there.
pub(super) enum Records {
    Known(Vec<Inventory>),
    /// Why they could not be read: nothing may be concluded, and nothing installed or uninstalled.
    Unknown(String),
}

impl Records {
    /// The record of an add-on, or why it is not known. What somebody else wrote tells nothing of what is
    /// installed.
    pub(super) fn of(&self, module: &str) -> Result<Option<Inventory>, String> {
        match self {
            Records::Known(all) => {
                Ok(all.iter().find(|it| it.module == module && it.standing != Standing::Foreign).cloned())
            }
            Records::Unknown(why) => Err(why.clone()),
        }
    }

    pub(super) fn all(&self) -> Option<&[Inventory]> {
        match self {
            Records::Known(all) => Some(all),
            Records::Unknown(_) => None,
        }
    }

    pub(super) fn unknown(&self) -> Option<&str> {
        match self {
            Records::Known(_) => None,
            Records::Unknown(why) => Some(why),
        }
    }

    /// The add-ons that can be installed: a network that would replace another cannot.
    pub(super) fn installable(&self, desired: Vec<DesiredAddOn>) -> Vec<DesiredAddOn> {
        let installed = self.all().unwrap_or_default();
        desired.into_iter().filter(|it| in_the_way(it, installed).is_none()).collect()
    }

    /// The rules that everything installed needs; `None` when that is not known.
    pub(super) fn rules_of_all(&self) -> Option<RequestedRules> {
        self.all().map(|all| rules_of(all.iter()))
    }

    /// What is asked for and what is installed, together: rules are revoked after the objects that need them
    /// are gone. While it is not known what is installed, nothing is taken from what was asked for `before`.
    pub(super) fn rules(
        &self,
        requested: Option<RequestedRules>,
        before: Option<RequestedRules>,
    ) -> Option<RequestedRules> {
        let mut res = requested?;
        for (group, rules) in self.rules_of_all().or(before)? {
            res.entry(group).or_default().extend(rules);
        }
        Some(res)
    }
}

impl AddOns {
    /// Reads what is installed. Before a control plane is `initialized`, nothing can be.
    pub(super) async fn records(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: Option<&WorkloadCluster>,
        initialized: bool,
    ) -> Result<Records, Error> {
        let workload = match workload {
            _ if !initialized => return Ok(Records::Known(Vec::new())),
            None => return Ok(Records::Unknown("the API server of the cluster does not answer".into())),
            Some(workload) => workload,
        };
        Ok(match workload.inventories().await {
            Ok((all, broken)) => {
                let all = self.authenticate(&object.object_name(), all).await?;
                broken.first().map_or(Records::Known(all), |it| Records::Unknown(it.to_string()))
            }
            Err(error) => Records::Unknown(format!("for the API server: {error}")),
        })
    }

    /// Finds out whose each record is. The first time, that is written down where anything may be.
    async fn authenticate(
        &self,
        name: &ObjectName,
        found: Vec<StoredRecord>,
    ) -> Result<Vec<Inventory>, Error> {
        let proofs = match self.proofs(name) {
            Some(proofs) => proofs,
            None if found.is_empty() => Proofs::default(),
            None => {
                let object = self.context.management.get::<ClusterPlugin>(name);
                let status = object.as_ref().and_then(|it| it.status.as_ref());
                let reported = status.map(|it| it.plugins.as_slice()).unwrap_or_default();
                let reported: Vec<&str> = reported.iter().map(|it| it.name.as_str()).collect();
                let stored = object
                    .as_ref()
                    .map(|it| self.stored_rules(&name.sibling(&it.spec.cluster_name)))
                    .unwrap_or_default();
                let first = Proofs::first(
                    found.iter().map(|it| (&it.inventory, it.digest.as_str())),
                    &reported,
                    &stored,
                );
                if !self.context.management.is_read_only() {
                    self.write_proofs(name, &first).await?;
                }
                first
            }
        };
        Ok(found.into_iter().map(|it| standing(it, &proofs)).collect())
    }

    /// Writes a record that the management cluster knows from then on.
    pub(super) async fn write_record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        record: &Inventory,
    ) -> Result<(), StepProgress> {
        let module = record.module.as_str();
        let text = serde_json::to_string(record).map_err(|it| StepProgress::Unreachable(it.to_string()))?;
        let new = digest(&text);
        let proofs = self.proofs(name).unwrap_or_default().with(module, &new);
        self.write_proofs(name, &proofs).await.map_err(unwritten)?;
        workload.write_inventory(module, &text).await?;
        self.write_proofs(name, &proofs.only(module, &new)).await.map_err(unwritten)
    }

    /// Removes the record of an add-on that is not there any more.
    pub(super) async fn remove_record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        module: &str,
    ) -> Result<(), StepProgress> {
        workload.remove_inventory(module).await?;
        match self.proofs(name) {
            Some(proofs) => self.write_proofs(name, &proofs.without(module)).await.map_err(unwritten),
            None => Ok(()),
        }
    }

    /// The record of one add-on, and whose it is.
    pub(super) async fn record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        module: &str,
    ) -> Result<Option<Inventory>, StepProgress> {
        let found = workload.inventory(module).await?;
        let proofs = self.proofs(name).unwrap_or_default();
        Ok(found.map(|it| standing(it, &proofs)))
    }

    /// Rules that the AWSCluster keeps of add-ons that stayed when their ClusterPlugin went.
    fn stored_rules(&self, cluster: &ObjectName) -> Vec<AddOnRule> {
        let aws_cluster = self.context.management.of_cluster::<AWSCluster>(cluster).into_iter().next();
        let text = aws_cluster.as_ref().and_then(|it| it.annotations().get(STORED_RULES_ANNOTATION));
        stored_rules(text.map(String::as_str)).unwrap_or_default()
    }

    fn proofs(&self, name: &ObjectName) -> Option<Proofs> {
        let object = self.context.management.get::<ClusterPlugin>(name)?;
        Proofs::read(object.annotations().get(RECORDS_ANNOTATION))
    }

    /// Writes the digests to the ClusterPlugin, unless it has them already.
    async fn write_proofs(&self, name: &ObjectName, proofs: &Proofs) -> Result<(), Error> {
        let Some(object) = self.context.management.get::<ClusterPlugin>(name) else { return Ok(()) };
        let text = proofs.text();
        if object.annotations().get(RECORDS_ANNOTATION) != Some(&text) {
            self.context
                .management
                .patch(&object, json!({"metadata": {"annotations": {RECORDS_ANNOTATION: text}}}))
                .await?;
        }
        Ok(())
    }
}

fn standing(found: StoredRecord, proofs: &Proofs) -> Inventory {
    let standing = proofs.standing(&found.inventory.module, &found.digest);
    if standing == Standing::Foreign {
        tracing::warn!(
            module = found.inventory.module,
            "somebody else wrote to the record of an add-on: it is not believed"
        );
    }
    Inventory { standing, ..found.inventory }
}

/// Nothing was written to the cluster either.
fn unwritten(error: Error) -> StepProgress {
    StepProgress::Unreachable(format!(
        "the digest of a record cannot be written to the ClusterPlugin: {error}"
    ))
}

/// Rules of these add-ons, by the role of the group.
pub(super) fn rules_of<'a>(installed: impl Iterator<Item = &'a Inventory>) -> RequestedRules {
    requested_rules(rules_of_installed(installed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installed(module: &str, port: u16) -> Inventory {
        let rule = json!({"group": "node", "protocol": "tcp", "fromPort": port, "toPort": port,
            "peer": "node", "description": module});
        let record = json!({"module": module, "version": "1", "digest": "", "config": {}, "planHash": "",
            "complete": true, "objects": [],
            "rules": [rule], "removal": []});
        Inventory { standing: Standing::Proven, ..serde_json::from_value(record).expect("a record") }
    }

    fn ports(rules: Option<RequestedRules>) -> Option<Vec<i32>> {
        Some(rules?.into_values().flatten().map(|it| it.from_port).collect())
    }

    fn asked(port: u16) -> Option<RequestedRules> {
        Records::Known(vec![installed("calico", port)]).rules_of_all()
    }

    #[test]
    fn rules_of_what_is_installed_stay_though_nobody_asks_for_it() {
        let records =
            Records::Known(vec![installed("calico", 179), installed("aws-load-balancer-controller", 9443)]);
        assert_eq!(ports(records.rules(Some(RequestedRules::new()), None)), Some(vec![179, 9443]));
        assert_eq!(ports(records.rules(asked(5473), asked(1))), Some(vec![179, 5473, 9443]));
        assert_eq!(records.rules(None, asked(1)), None);
    }

    #[test]
    fn a_record_that_somebody_else_may_have_written_opens_nothing() {
        for standing in [Standing::Unknown, Standing::Foreign] {
            let records = Records::Known(vec![Inventory { standing, ..installed("calico", 1) }]);
            assert_eq!(ports(records.rules(asked(179), None)), Some(vec![179]));
        }
    }

    #[test]
    fn no_rule_is_given_up_while_it_is_not_known_what_is_installed() {
        let unknown = Records::Unknown("connection refused".into());
        assert_eq!(ports(unknown.rules(asked(5473), asked(179))), Some(vec![179, 5473]));
        assert_eq!(unknown.rules(asked(5473), None), None);
    }

    #[test]
    fn a_network_that_would_replace_another_is_held_back_alone() {
        let spec = json!({"clusterName": "one", "networking": {"amazonVPC": {}}, "storage": {"ebs": {}}});
        let desired = addons::desired(&serde_json::from_value(spec).expect("a spec"));
        let names = |records: Records| {
            records
                .installable(desired.clone())
                .iter()
                .map(|it| it.module.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            names(Records::Known(vec![installed("calico", 179)])),
            "aws-cloud-controller-manager aws-ebs-csi"
        );
        assert_eq!(names(Records::Known(vec![])), "aws-cloud-controller-manager aws-vpc-cni aws-ebs-csi");
    }
}
