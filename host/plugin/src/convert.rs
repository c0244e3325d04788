//! From the contract's plain values to the records that a component takes.

use crate::bindings::kurator::cluster_plugin::types as wit;

pub fn request(request: &contract::Request) -> wit::Request {
    wit::Request {
        operation: operation(request.operation),
        host: wit::HostInfo {
            version: request.host.version.clone(),
            features: request.host.features.clone(),
        },
        installed_version: request.installed_version.clone(),
        previous_config: request.previous_config.as_ref().map(|config| config.to_string()),
        config: request.config.to_string(),
        facts: request.facts.iter().map(fact).collect(),
        extra: request.extra.to_string(),
    }
}

fn operation(operation: contract::Operation) -> wit::Operation {
    match operation {
        contract::Operation::Install => wit::Operation::Install,
        contract::Operation::Upgrade => wit::Operation::Upgrade,
        contract::Operation::Uninstall => wit::Operation::Uninstall,
        contract::Operation::DeleteCluster => wit::Operation::DeleteCluster,
    }
}

fn fact(fact: &contract::Fact) -> wit::Fact {
    let value = match &fact.value {
        contract::FactValue::Present(value) => wit::FactValue::Present(value.to_string()),
        contract::FactValue::Absent => wit::FactValue::Absent,
        contract::FactValue::Denied(why) => wit::FactValue::Denied(why.clone()),
        contract::FactValue::Unknown(why) => wit::FactValue::Unknown(why.clone()),
    };
    wit::Fact { key: fact.key.clone(), value }
}
