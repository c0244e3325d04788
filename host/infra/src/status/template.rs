//! The status of an AWSMachineTemplate: what a node of it would have, which the cluster autoscaler has to
//! know before there is one.

use std::collections::BTreeMap;

use crds::machine::{AWSMachineTemplateStatus, Architecture, NodeInfo, OperatingSystem};

use model::FoundInstanceType;

/// The whole status of a template whose machines are of this type. They run Linux: nothing else can be
/// booted.
pub fn machine_template(found: &FoundInstanceType) -> AWSMachineTemplateStatus {
    let cpu = (found.cpus > 0).then(|| ("cpu".to_owned(), found.cpus.to_string()));
    let memory = (found.memory_mib > 0).then(|| ("memory".to_owned(), format!("{}Mi", found.memory_mib)));
    let architecture = match found.architecture.as_str() {
        "arm64" => Architecture::Arm64,
        _ => Architecture::Amd64,
    };
    AWSMachineTemplateStatus {
        capacity: BTreeMap::from_iter(cpu.into_iter().chain(memory)),
        node_info: Some(NodeInfo {
            architecture: Some(architecture),
            operating_system: Some(OperatingSystem::Linux),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(architecture: &str, cpus: i32, memory_mib: i64) -> serde_json::Value {
        let found = FoundInstanceType { architecture: architecture.into(), cpus, memory_mib };
        serde_json::to_value(machine_template(&found)).expect("JSON")
    }

    #[test]
    fn a_template_says_what_its_instance_type_has_in_kubernetes_words() {
        let expected = json!({"capacity": {"cpu": "2", "memory": "8192Mi"}, "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"}});
        assert_eq!(said("x86_64", 2, 8192), expected);
        assert_eq!(said("arm64", 2, 8192)["nodeInfo"]["architecture"], "arm64");
    }

    #[test]
    fn what_aws_does_not_say_is_left_out() {
        assert_eq!(said("x86_64", 0, 512)["capacity"], json!({"memory": "512Mi"}));
    }
}
