//! The cluster templates as `clusterctl generate cluster` finds them: a flavor is the default template but
//! for what it is for. No bed is needed; that clusters come of them, the scenarios show.

use sandbox::paths::source;
use serde_json::{Value, json};

/// The documents of a template. Its variables are texts to YAML.
fn template(flavor: &str) -> Vec<Value> {
    let path = source().join(format!("deploy/templates/cluster-template{flavor}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split("\n---\n")
        .map(|document| {
            serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}:\n{document}"))
        })
        .collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

/// What kubeadm's configuration says of all machines of the cluster: those of the control plane, and the
/// others.
fn machines(documents: &[Value]) -> [&Value; 2] {
    let control_plane = &of_kind(documents, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"];
    [control_plane, &of_kind(documents, "KubeadmConfigTemplate")["spec"]["template"]["spec"]]
}

#[test]
fn the_vpc_cni_needs_no_pod_range_and_systemd_to_keep_out() {
    let documents = template("-amazon-vpc-cni");
    let network = of_kind(&documents, "Cluster")["spec"]["clusterNetwork"].as_object().expect("a network");
    assert_eq!(network.keys().collect::<Vec<_>>(), ["services"]);
    for machine in machines(&documents) {
        let files = machine["files"].as_array().expect("files");
        let [link] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(link["path"], "/etc/systemd/network/99-default.link");
        let content = link["content"].as_str().expect("a content");
        assert!(content.contains("[Link]\n") && content.contains("\nMACAddressPolicy=none\n"), "{content}");
        for way in ["initConfiguration", "joinConfiguration"].iter().filter(|it| machine.get(it).is_some()) {
            let arguments =
                machine[way]["nodeRegistration"]["kubeletExtraArgs"].as_array().expect("arguments");
            assert!(arguments.iter().any(|it| it["name"] == "max-pods"), "{way}: {arguments:?}");
        }
    }
    assert_eq!(of_kind(&documents, "ClusterPlugin")["spec"]["networking"], json!({"amazonVPC": {}}));
}

#[test]
fn the_flavor_of_the_vpc_cni_differs_in_nothing_else() {
    let mut documents = template("-amazon-vpc-cni");
    for document in &mut documents {
        let (kind, spec) = (document["kind"].as_str().unwrap_or_default().to_owned(), &mut document["spec"]);
        let machine = match kind.as_str() {
            "Cluster" => {
                spec["clusterNetwork"]["pods"] = json!({"cidrBlocks": ["${POD_CIDR:=192.168.0.0/16}"]});
                continue;
            }
            "ClusterPlugin" => {
                spec["networking"] = json!({"calico": {}});
                continue;
            }
            "KubeadmControlPlane" => &mut spec["kubeadmConfigSpec"],
            "KubeadmConfigTemplate" => &mut spec["template"]["spec"],
            _ => continue,
        };
        let machine = machine.as_object_mut().expect("settings of machines");
        machine.remove("files");
        for way in machine.values_mut() {
            if let Some(arguments) =
                way.pointer_mut("/nodeRegistration/kubeletExtraArgs").and_then(Value::as_array_mut)
            {
                arguments.retain(|it| it["name"] != "max-pods");
            }
        }
    }
    assert_eq!(documents, template(""));
}
