//! Facts that take more than a copy: what plugins are told of subnets, StorageClasses, IPPools, file
//! systems and instance types.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use contract::{FactValue, FileSystemFact, InstanceTypeFact, IpPoolFact, StorageClassFact, SubnetFact};
use model::InstanceType;
use model::ListedFileSystem;
use model::finding::Reading;
use model::{FoundInstance, FoundSubnet};

/// Tags of subnets that load balancers are put in, and the scheme of those.
const SCHEMES: [(&str, &str); 2] = [
    (crds::names::PUBLIC_LOAD_BALANCER_TAG, "internet-facing"),
    (crds::names::INTERNAL_LOAD_BALANCER_TAG, "internal"),
];

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

/// The value of fact `file-systems`.
pub fn file_systems_fact(reading: &Reading<Vec<ListedFileSystem>>) -> FactValue {
    let fact = |it: &ListedFileSystem| FileSystemFact {
        id: it.id.clone(),
        name: it.name.clone(),
        tags: it.tags.clone(),
        state: it.state.clone(),
    };
    read(reading, |all| {
        let mut all: Vec<FileSystemFact> = all.iter().map(fact).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    })
}

/// The value of fact `instance-types`. `max_pods` are the Pods that kubelets let in, by instance type.
pub fn instance_types_fact(
    reading: &Reading<Vec<InstanceType>>,
    max_pods: &BTreeMap<String, u32>,
) -> FactValue {
    let fact = |it: &InstanceType| InstanceTypeFact {
        name: it.name.clone(),
        interfaces: it.interfaces,
        addresses_per_interface: it.addresses_per_interface,
        nitro: it.nitro,
        max_pods: max_pods.get(&it.name).copied(),
    };
    read(reading, |all| {
        let mut all: Vec<InstanceTypeFact> = all.iter().map(fact).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    })
}

/// What could not be read is never told as if there were nothing.
fn read<T, U: Serialize>(reading: &Reading<T>, fact: impl FnOnce(&T) -> U) -> FactValue {
    match reading {
        Reading::Found(found) => FactValue::Present(json!(fact(found))),
        Reading::Absent => FactValue::Absent,
        Reading::AccessDenied { permission } => {
            FactValue::Denied(format!("this operator has no permission {permission}"))
        }
        Reading::Failed { message } => FactValue::Unknown(message.clone()),
    }
}

/// How many Pods a Node's kubelet lets in.
pub fn max_pods(node: &Value) -> Option<u32> {
    node.pointer("/status/allocatable/pods")?.as_str()?.parse().ok()
}

/// The value of fact `storage-classes`, from StorageClasses as the API server shows them.
pub fn storage_classes_fact(classes: &[Value]) -> FactValue {
    let fact = |it: &Value| {
        Some(StorageClassFact {
            name: it["metadata"]["name"].as_str()?.to_owned(),
            provisioner: it["provisioner"].as_str()?.to_owned(),
            is_default: it["metadata"]["annotations"][DEFAULT_CLASS] == "true",
            parameters: texts(&it["parameters"]),
        })
    };
    let mut all: Vec<StorageClassFact> = classes.iter().filter_map(fact).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    FactValue::Present(json!(all))
}

/// The value of fact `ip-pools`, from IPPools of `crd.projectcalico.org/v1` as the API server shows them.
pub fn ip_pools_fact(pools: &[Value]) -> FactValue {
    /// What Calico takes for an IPv4 pool that says none.
    const BLOCK_SIZE: u32 = 26;
    let fact = |it: &Value| {
        let block_size = it["spec"]["blockSize"].as_u64().and_then(|it| u32::try_from(it).ok());
        Some(IpPoolFact {
            name: it["metadata"]["name"].as_str()?.to_owned(),
            cidr: it["spec"]["cidr"].as_str()?.to_owned(),
            block_size: block_size.filter(|it| *it > 0).unwrap_or(BLOCK_SIZE),
            managed: it["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tigera-operator",
        })
    };
    let mut all: Vec<IpPoolFact> = pools.iter().filter_map(fact).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    FactValue::Present(json!(all))
}

/// The value of fact `machine-subnets`, of the cluster's instances.
pub fn machine_subnets_fact<'a>(instances: impl Iterator<Item = &'a FoundInstance>) -> FactValue {
    let all: BTreeSet<&str> = instances.filter_map(|it| it.subnet_id.as_deref()).collect();
    FactValue::Present(json!(all))
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{State, Tags};

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
        let all = [
            subnet("subnet-2", &[("kubernetes.io/role/internal-elb", "")]),
            subnet("subnet-1", &[("kubernetes.io/role/elb", "1")]),
        ];
        let FactValue::Present(value) = subnets_fact(all.iter()) else { panic!("the subnets are known") };
        expect_test::expect![[
            r#"[{"id":"subnet-1","loadBalancerSchemes":["internet-facing"],"zone":"us-east-1a"},{"id":"subnet-2","loadBalancerSchemes":["internal"],"zone":"us-east-1a"}]"#
        ]]
        .assert_eq(&value.to_string());
    }

    #[test]
    fn the_default_storage_class_is_known_by_its_annotation() {
        let class = json!({"metadata": {"name": "gp2", "annotations": {DEFAULT_CLASS: "true"}}, "provisioner": "kubernetes.io/aws-ebs"});
        let other = json!({"metadata": {"name": "efs"}, "provisioner": "efs.csi.aws.com", "parameters": {"fileSystemId": "fs-1"}});
        let FactValue::Present(value) = storage_classes_fact(&[class, other]) else {
            panic!("the classes are known")
        };
        expect_test::expect![[
            r#"[{"isDefault":false,"name":"efs","parameters":{"fileSystemId":"fs-1"},"provisioner":"efs.csi.aws.com"},{"isDefault":true,"name":"gp2","parameters":{},"provisioner":"kubernetes.io/aws-ebs"}]"#
        ]]
        .assert_eq(&value.to_string());
    }

    fn types() -> Reading<Vec<InstanceType>> {
        let named = |name: &str| InstanceType {
            name: name.into(),
            interfaces: 3,
            addresses_per_interface: 4,
            nitro: true,
        };
        Reading::Found(vec![named("t3.small"), named("t3.micro")])
    }

    #[test]
    fn pods_are_told_of_types_whose_kubelet_was_asked() {
        let FactValue::Present(value) = instance_types_fact(&types(), &[("t3.small".to_owned(), 110)].into())
        else {
            panic!("they are known")
        };
        expect_test::expect![[
            r#"[{"addressesPerInterface":4,"interfaces":3,"name":"t3.micro","nitro":true},{"addressesPerInterface":4,"interfaces":3,"maxPods":110,"name":"t3.small","nitro":true}]"#
        ]]
        .assert_eq(&value.to_string());
    }

    #[test]
    fn a_kubelet_says_how_many_pods_it_lets_in() {
        assert_eq!(max_pods(&json!({"status": {"allocatable": {"pods": "110"}}})), Some(110));
        for unclear in [
            json!({}),
            json!({"status": {"allocatable": {"pods": 110}}}),
            json!({"status": {"allocatable": {"pods": "many"}}}),
        ] {
            assert_eq!(max_pods(&unclear), None, "{unclear}");
        }
    }

    #[test]
    fn what_could_not_be_read_is_not_told_as_if_there_were_nothing() {
        let denied = Reading::AccessDenied { permission: "elasticfilesystem:DescribeFileSystems".into() };
        let why = "this operator has no permission elasticfilesystem:DescribeFileSystems";
        assert_eq!(file_systems_fact(&denied), FactValue::Denied(why.into()));
        let failed = Reading::Failed { message: "no answer in time".into() };
        assert_eq!(file_systems_fact(&failed), FactValue::Unknown("no answer in time".into()));
        assert_eq!(file_systems_fact(&Reading::Found(vec![])), FactValue::Present(json!([])));
    }

    #[test]
    fn file_systems_are_sorted_by_id() {
        let listed = |id: &str| ListedFileSystem {
            id: id.into(),
            name: String::new(),
            tags: Tags::new(),
            state: "available".into(),
        };
        let FactValue::Present(value) =
            file_systems_fact(&Reading::Found(vec![listed("fs-2"), listed("fs-1")]))
        else {
            panic!("they are known")
        };
        expect_test::expect![[
            r#"[{"id":"fs-1","name":"","state":"available","tags":{}},{"id":"fs-2","name":"","state":"available","tags":{}}]"#
        ]]
        .assert_eq(&value.to_string());
    }

    #[test]
    fn pools_are_told_with_whose_they_are() {
        let pool = |name: &str, labels: Value, spec: Value| json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        let managed = json!({"app.kubernetes.io/managed-by": "tigera-operator"});
        let all = [
            pool("own", json!(null), json!({"cidr": "10.0.0.0/16"})),
            pool("default-ipv4-ippool", managed, json!({"cidr": "192.168.0.0/16", "blockSize": 27})),
            json!({"metadata": {"name": "broken"}}),
        ];
        let FactValue::Present(value) = ip_pools_fact(&all) else { panic!("they are known") };
        expect_test::expect![[
            r#"[{"blockSize":27,"cidr":"192.168.0.0/16","managed":true,"name":"default-ipv4-ippool"},{"blockSize":26,"cidr":"10.0.0.0/16","managed":false,"name":"own"}]"#
        ]]
        .assert_eq(&value.to_string());
    }
}
