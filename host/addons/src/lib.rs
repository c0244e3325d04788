//! Decides about add-ons: which are desired, when each may start, what of a plan comes next, and how they go
//! with their cluster. The host carries it out.

pub mod approval;
pub mod built_in;
pub mod certificate;
mod changes;
mod conflict;
pub mod consent;
mod desired;
mod drift;
pub mod efs;
mod facts;
mod field_wait;
pub mod fleet;
pub mod grant;
mod inventory;
pub mod kubernetes_upgrade;
mod load_balancer_users;
mod nodes;
pub mod order;
mod outline;
pub mod plugin_module;
mod problem;
mod proof;
mod recreate;
mod rule;
mod slot;
mod status;
mod steps;
pub mod stored;
mod stored_rules;
mod teardown;
mod uninstall;
pub mod upgrade;
pub mod versions;
mod volumes;
mod webhooks;

pub use changes::{changes, changes_of_installation, changes_of_record, changes_of_removal};
pub use conflict::{Cause, may_take_over};
pub use desired::{DesiredAddOn, Source, desired};
pub use drift::{
    Change, Compared, Decision, Drift, History, Path, UNTOLD, WRITERS, Writers, compare, drift, drifted,
    without,
};
pub use facts::{
    file_systems_fact, instance_types_fact, ip_pools_fact, machine_subnets_fact, max_pods,
    storage_classes_fact, subnets_fact,
};
pub use field_wait::waited_for_fields;
pub use inventory::{
    Approved, Inventory, LARGEST_RECORD, ObjectRef, Previous, Registered, Succession, UndoneUpgrade,
    merged_rules, objects, plan_hash, prune, rules, too_large, too_large_to_record,
};
pub use load_balancer_users::{
    Exposure, ObservedExposure, load_balanced, target_group_bindings, used_by_classes,
    used_by_ingress_controller,
};
pub use nodes::{NODES_PARTS, nodes_answer};
pub use outline::outline;
pub use problem::{
    NODE_PARTS, POD_PARTS, Problem, find_problem, on_lost_nodes, tigera_status, works_but_for,
};
pub use proof::{Proofs, RECORDS_ANNOTATION, Removal, Standing, authorize_removal, digest, removal};
pub use recreate::{Recreate, recreate};
pub use rule::rule;
pub use slot::{ClusterState, Slot, Stage, can_be_uninstalled, waits_for};
pub use status::{Progress, UpgradeProgress, status};
pub use steps::{is_checked_again, subject_of, waited};
pub use stored_rules::{STORED_RULES_ANNOTATION, rules_of_installed, stored_rules, stored_rules_text};
pub use teardown::{Api, LoadBalancers, ObservedTeardown, Teardown, awaited, removed_with_cluster, teardown};
pub use uninstall::{Leftover, in_the_way, leftover, leftovers};
pub use volumes::{
    ObservedStorage, VolumeWork, claims_to_delete, used_by_storage, volumes, volumes_that_stay,
};
pub use webhooks::{SLICE_PARTS, has_ready_endpoint, services_of_webhooks, webhook_services};
