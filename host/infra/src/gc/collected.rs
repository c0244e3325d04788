//! Which leftovers go with a cluster, by the annotations of its AWSCluster that Cluster API Provider AWS
//! reads too.

use std::collections::BTreeMap;

use crds::names::{EXTERNAL_RESOURCE_GC_ANNOTATION, EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION};

use super::LeftoverKind;
use model::Invalid;

/// Words for what can be chosen.
const TASKS: [&str; 3] = ["load-balancer", "target-group", "security-group"];

/// Which kinds of leftovers go. Interfaces that nobody uses go in any case: they are of no use to anybody,
/// and hold their subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    load_balancers: bool,
    target_groups: bool,
    security_groups: bool,
}

impl Default for Collected {
    fn default() -> Self {
        Collected { load_balancers: true, target_groups: true, security_groups: true }
    }
}

impl Collected {
    /// Of the kinds that can be chosen, none.
    pub const NOTHING: Collected =
        Collected { load_balancers: false, target_groups: false, security_groups: false };

    /// What the annotations of an AWSCluster say. Without any, everything goes.
    ///
    /// # Errors
    /// The annotation that says neither yes nor no, or names what there is not.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Result<Collected, Invalid> {
        let value = |name: &str| annotations.and_then(|it| it.get(name)).map(String::as_str);
        let invalid =
            |name: &str, message: String| Invalid::new(format!("metadata.annotations[{name}]"), message);
        match value(EXTERNAL_RESOURCE_GC_ANNOTATION) {
            None | Some("1" | "t" | "T" | "TRUE" | "true" | "True") => (),
            Some("0" | "f" | "F" | "FALSE" | "false" | "False") => return Ok(Self::NOTHING),
            Some(other) => {
                return Err(invalid(
                    EXTERNAL_RESOURCE_GC_ANNOTATION,
                    format!("{other:?} is neither true nor false"),
                ));
            }
        }
        let chosen: Vec<&str> =
            match value(EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION).filter(|it| !it.trim().is_empty()) {
                None => return Ok(Self::default()),
                Some(chosen) => chosen.split(',').map(str::trim).collect(),
            };
        if let Some(other) = chosen.iter().find(|it| !TASKS.contains(it)) {
            return Err(invalid(
                EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION,
                format!("{other:?} is none of {}", TASKS.join(", ")),
            ));
        }
        let [load_balancers, target_groups, security_groups] = TASKS.map(|it| chosen.contains(&it));
        Ok(Collected { load_balancers, target_groups, security_groups })
    }

    /// Whether leftovers of this kind go.
    pub fn has(self, kind: LeftoverKind) -> bool {
        match kind {
            LeftoverKind::ClassicLoadBalancer | LeftoverKind::LoadBalancer => self.load_balancers,
            LeftoverKind::TargetGroup => self.target_groups,
            LeftoverKind::SecurityGroup | LeftoverKind::SecurityGroupRules => self.security_groups,
            LeftoverKind::NetworkInterface => true,
        }
    }
}
