//! What the manifest of a pod says of a container: its flags and its environment.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use kube::ResourceExt;

/// The value of a container's flag.
pub fn flag<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    let arguments = container.command.iter().flatten().chain(container.args.iter().flatten());
    arguments
        .filter_map(|argument| argument.trim_start_matches('-').split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// The environment variables of a container that are given by value or by a field of the pod that is known
/// from the start.
pub fn variables(container: &Container, pod: &Pod) -> Vec<(String, String)> {
    let field = |path: &str| match path {
        "metadata.name" => Some(pod.name_any()),
        "metadata.namespace" => pod.namespace(),
        "metadata.uid" => pod.uid(),
        "spec.nodeName" => pod.spec.as_ref()?.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.as_ref()?.service_account_name.clone(),
        _ => None,
    };
    let value = |variable: &EnvVar| {
        let source = || field(&variable.value_from.as_ref()?.field_ref.as_ref()?.field_path);
        Some((variable.name.clone(), variable.value.clone().or_else(source)?))
    };
    container.env.iter().flatten().filter_map(value).collect()
}
