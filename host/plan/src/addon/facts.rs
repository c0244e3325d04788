//! Facts that take more than a copy: what plugins are told of subnets and of StorageClasses. Nothing here reads them.

use serde_json::{Value, json};

use crate::contract::{FactValue, StorageClassFact, SubnetFact};
use crate::snapshot::FoundSubnet;

/// Tags of subnets that load balancers are put in, and the scheme of those.
const SCHEMES: [(&str, &str); 2] =
    [(crds::names::PUBLIC_LOAD_BALANCER_TAG, "internet-facing"), (crds::names::INTERNAL_LOAD_BALANCER_TAG, "internal")];

/// Annotation of the StorageClass that claims get which name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The value of fact `subnets`.
pub fn subnets_fact<'a>(subnets: impl Iterator<Item = &'a FoundSubnet>) -> FactValue {
    let fact = |it: &FoundSubnet| SubnetFact {
        id: it.id.clone(),
        zone: it.zone.clone(),
        // Both `1` and an empty value are taken by those who look for the tag.
        load_balancer_schemes: SCHEMES
            .iter()
            .filter(|(tag, _)| it.tags.get(*tag).is_some_and(|value| value.is_empty() || value == "1"))
            .map(|(_, scheme)| (*scheme).to_owned())
            .collect(),
    };
    let mut all: Vec<SubnetFact> = subnets.map(fact).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    FactValue::Present(json!(all))
}

/// The value of fact `storage-classes`, from StorageClasses as the API server shows them.
pub fn storage_classes_fact(classes: &[Value]) -> FactValue {
    let fact = |it: &Value| {
        Some(StorageClassFact {
            name: it["metadata"]["name"].as_str()?.to_owned(),
            provisioner: it["provisioner"].as_str()?.to_owned(),
            is_default: it["metadata"]["annotations"][DEFAULT_CLASS] == "true",
        })
    };
    let mut all: Vec<StorageClassFact> = classes.iter().filter_map(fact).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    FactValue::Present(json!(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{State, Tags};

    #[test]
    fn a_subnet_is_for_the_load_balancers_that_its_tags_name() {
        let subnet = |id: &str, tags: &[(&str, &str)]| FoundSubnet {
            id: id.into(),
            vpc_id: "vpc-1".into(),
            zone: "us-east-1a".into(),
            cidr: "10.0.0.0/24".into(),
            public: true,
            state: State::Ready,
            tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Tags>(),
        };
        let all = [subnet("subnet-2", &[("kubernetes.io/role/internal-elb", "")]), subnet("subnet-1", &[("kubernetes.io/role/elb", "1")])];
        let FactValue::Present(value) = subnets_fact(all.iter()) else { panic!("the subnets are known") };
        expect_test::expect![[
            r#"[{"id":"subnet-1","loadBalancerSchemes":["internet-facing"],"zone":"us-east-1a"},{"id":"subnet-2","loadBalancerSchemes":["internal"],"zone":"us-east-1a"}]"#
        ]]
        .assert_eq(&value.to_string());
    }

    #[test]
    fn the_default_storage_class_is_known_by_its_annotation() {
        let class = json!({"metadata": {"name": "gp2", "annotations": {DEFAULT_CLASS: "true"}}, "provisioner": "kubernetes.io/aws-ebs"});
        let FactValue::Present(value) = storage_classes_fact(&[class]) else { panic!("the classes are known") };
        expect_test::expect![[r#"[{"isDefault":true,"name":"gp2","provisioner":"kubernetes.io/aws-ebs"}]"#]].assert_eq(&value.to_string());
    }
}
