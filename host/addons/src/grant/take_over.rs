//! Whose fields of an add-on's objects are taken over where they are in conflict with what is applied.

use super::TakeOver;
use super::cover::covers;
use crate::ObjectRef;

/// Managers whose fields of this object are taken over where they are in conflict with what is applied.
pub fn taken_over<'a>(all: &'a [TakeOver], object: &ObjectRef) -> Vec<&'a str> {
    let at = (
        object.api_version.as_str(),
        object.kind.as_str(),
        object.namespace.as_deref(),
        object.name.as_str(),
    );
    all.iter()
        .filter(|it| covers(std::slice::from_ref(&it.object), at))
        .map(|it| it.manager.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::built_in::grants;

    #[test]
    fn what_tigeras_operator_writes_to_the_installation_is_taken_over() {
        let of = |module: &str, kind: &str, name: &str| {
            let api_version = "operator.tigera.io/v1".to_owned();
            let object = ObjectRef { api_version, kind: kind.into(), namespace: None, name: name.into() };
            taken_over(&grants(module, &json!({})).taken_over, &object).join(", ")
        };
        assert_eq!(of("calico", "Installation", "default"), "tigera-operator");
        assert_eq!([of("calico", "Installation", "other"), of("calico", "APIServer", "default")], ["", ""]);
        assert_eq!(of("aws-ebs-csi", "Installation", "default"), "");
    }
}
