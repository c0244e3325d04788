//! The registration of an instance at a load balancer.

use crate::{Instance, Key, LoadBalancer, ResourceKind};

/// One control plane instance behind a load balancer; named like the instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its role: that of the instance.
    pub name: String,
    /// Role of the load balancer.
    pub load_balancer: String,
    /// Role of the instance.
    pub instance: String,
}

impl ResourceKind for Target {
    fn after(&self) -> Vec<Key> {
        vec![LoadBalancer::key(&self.load_balancer), Instance::key(&self.instance)]
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.instance == observed.instance
    }

    fn details(&self) -> String {
        format!(" of {}", self.load_balancer)
    }
}
