//! The list of Go programs, the module that pins each, and how a ready-made one is recognized.
//!
//! Versions are those of the `go.mod` files in `tests/tools`; the linker flags here must name the same ones.

/// Kubernetes' version, as linked into its programs.
pub const KUBERNETES_VERSION: &str = "1.36.3";
/// Cluster API's version, as linked into its programs.
const CLUSTER_API: &str = "1.14.2";

/// A program that is built from a package of a Go module under `tests/tools`.
pub struct Program {
    pub name: &'static str,
    /// Folder under `tests/tools`.
    pub module: &'static str,
    pub package: &'static str,
    /// Arguments that make it print its version, and what must be in the output, for programs that people have on
    /// their machines.
    pub version: Option<(&'static [&'static str], &'static str)>,
}

/// All programs, the long builds first.
pub const PROGRAMS: [Program; 13] = [
    program("etcd", "etcd", "go.etcd.io/etcd/server/v3", Some((&["--version"], "etcd Version: 3.6.14"))),
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    program("kubectl", "kube", "k8s.io/kubernetes/cmd/kubectl", Some((&["version", "--client"], "Client Version: v1.36.3"))),
    program("kubeadm", "kube", "k8s.io/kubernetes/cmd/kubeadm", Some((&["version", "-o", "short"], "v1.36.3"))),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    program("capi-core", "capi", "sigs.k8s.io/cluster-api/core", None),
    program("capi-bootstrap", "capi", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", None),
    program("capi-controlplane", "capi", "sigs.k8s.io/cluster-api/controlplane/kubeadm", None),
    program("clusterctl", "capi", "sigs.k8s.io/cluster-api/cmd/clusterctl", Some((&["version", "-o", "short"], "v1.14.2"))),
    program("aws-cloud-controller-manager", "ccm", "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager", None),
    program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", None),
    program("etcdctl", "etcd", "go.etcd.io/etcd/etcdctl/v3", Some((&["version"], "etcdctl version: 3.6.14"))),
];

const fn program(
    name: &'static str,
    module: &'static str,
    package: &'static str,
    version: Option<(&'static [&'static str], &'static str)>,
) -> Program {
    Program { name, module, package, version }
}

const fn kubernetes(name: &'static str, package: &'static str) -> Program {
    program(name, "kube", package, Some((&["--version"], "Kubernetes v1.36.3")))
}

/// Linker flags of a module. Without the versions, kube-apiserver calls itself v0.0.0 and Cluster API's managers
/// refuse to work with it.
pub fn linker_flags(module: &str) -> String {
    let mut flags = "-s -w".to_owned();
    match module {
        "kube" | "ccm" => {
            stamp(&mut flags, "k8s.io/component-base/version", KUBERNETES_VERSION);
            stamp(&mut flags, "k8s.io/client-go/pkg/version", KUBERNETES_VERSION);
        }
        "capi" => stamp(&mut flags, "sigs.k8s.io/cluster-api/version", CLUSTER_API),
        _ => {}
    }
    flags
}

fn stamp(flags: &mut String, package: &str, version: &str) {
    let mut numbers = version.split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let values = [
        ("gitVersion", format!("v{version}")),
        ("gitMajor", major.to_owned()),
        ("gitMinor", minor.to_owned()),
        ("gitCommit", "unknown".to_owned()),
        ("gitTreeState", "clean".to_owned()),
        // Fixed, so that the same sources give the same program.
        ("buildDate", "2026-01-01T00:00:00Z".to_owned()),
    ];
    for (name, value) in values {
        flags.push_str(&format!(" -X {package}.{name}={value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_versions_are_those_that_the_modules_pin() {
        let tools = crate::paths::source().join("tests/tools");
        let pins = [
            ("kube", format!("k8s.io/kubernetes v{KUBERNETES_VERSION}")),
            ("capi", format!("sigs.k8s.io/cluster-api v{CLUSTER_API}")),
            ("etcd", "go.etcd.io/etcd/server/v3 v3.6.14".to_owned()),
        ];
        for (module, pin) in pins {
            let text = std::fs::read_to_string(tools.join(module).join("go.mod")).expect("a go.mod");
            assert!(text.contains(&pin), "{module}/go.mod does not pin {pin}");
        }
    }

    #[test]
    fn accepted_versions_of_ready_made_programs_are_the_pinned_ones() {
        for program in PROGRAMS {
            let Some((_, output)) = program.version else { continue };
            let pinned = match program.module {
                "kube" => KUBERNETES_VERSION,
                "capi" => CLUSTER_API,
                _ => "3.6.14",
            };
            assert!(output.ends_with(pinned), "{}: {output}", program.name);
        }
    }
}
