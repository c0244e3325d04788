//! The list of Go programs, and how a ready-made one is recognized.
//!
//! One module pins them all (`tests/tools/go.mod`), so that what they share is compiled once; the versions
//! here must be the same ones.

/// Kubernetes' version, as linked into its programs.
pub const KUBERNETES_VERSION: &str = "1.36.3";
/// Cluster API's version, as linked into its programs.
const CLUSTER_API: &str = "1.14.2";
/// The EBS CSI driver's version, as linked into it: the one that the add-on installs.
const EBS_CSI: &str = "1.63.1";

const EBS_CSI_MODULE: &str = "github.com/kubernetes-sigs/aws-ebs-csi-driver";

/// A program that is built from a package of the Go module.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub package: &'static str,
    /// Arguments that make it print its version, and what must be in the output, for programs that people
    /// have on their machines.
    pub version: Option<(&'static [&'static str], &'static str)>,
}

impl Program {
    /// What `go build` calls it: the last part of the package's path that is no major version.
    pub fn built_as(&self) -> &'static str {
        let version = |part: &str| part.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
        self.package.rsplit('/').find(|part| !version(part)).unwrap_or(self.package)
    }
}

/// All programs.
pub const PROGRAMS: [Program; 16] = [
    program("etcd", "go.etcd.io/etcd/server/v3", Some((&["--version"], "etcd Version: 3.6.14"))),
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    program(
        "kubectl",
        "k8s.io/kubernetes/cmd/kubectl",
        Some((&["version", "--client"], "Client Version: v1.36.3")),
    ),
    program("kubeadm", "k8s.io/kubernetes/cmd/kubeadm", Some((&["version", "-o", "short"], "v1.36.3"))),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    program("capi-core", "sigs.k8s.io/cluster-api/core", None),
    program("capi-bootstrap", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", None),
    program("capi-controlplane", "sigs.k8s.io/cluster-api/controlplane/kubeadm", None),
    program(
        "clusterctl",
        "sigs.k8s.io/cluster-api/cmd/clusterctl",
        Some((&["version", "-o", "short"], "v1.14.2")),
    ),
    program(
        "aws-cloud-controller-manager",
        "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager",
        None,
    ),
    program("aws-ebs-csi-driver", "github.com/kubernetes-sigs/aws-ebs-csi-driver/cmd", None),
    program("csi-provisioner", "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner", None),
    program("csi-attacher", "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher", None),
    program("csi-resizer", "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer", None),
    program("kwok", "sigs.k8s.io/kwok/cmd/kwok", None),
];

const fn program(
    name: &'static str,
    package: &'static str,
    version: Option<(&'static [&'static str], &'static str)>,
) -> Program {
    Program { name, package, version }
}

const fn kubernetes(name: &'static str, package: &'static str) -> Program {
    program(name, package, Some((&["--version"], "Kubernetes v1.36.3")))
}

/// Splits programs into as few builds as possible, in each of which no two get the same name.
pub fn builds(programs: &[Program]) -> Vec<Vec<Program>> {
    let mut builds: Vec<Vec<Program>> = Vec::new();
    for program in programs {
        match builds.iter_mut().find(|build| build.iter().all(|other| other.built_as() != program.built_as()))
        {
            Some(build) => build.push(*program),
            None => builds.push(vec![*program]),
        }
    }
    builds
}

/// Linker flags. Without the versions, kube-apiserver calls itself v0.0.0 and Cluster API's managers refuse
/// to work with it. A program that has not got one of the packages ignores its version.
pub fn linker_flags() -> String {
    let mut flags = "-s -w".to_owned();
    stamp(&mut flags, "k8s.io/component-base/version", KUBERNETES_VERSION);
    stamp(&mut flags, "k8s.io/client-go/pkg/version", KUBERNETES_VERSION);
    stamp(&mut flags, "sigs.k8s.io/cluster-api/version", CLUSTER_API);
    for package in ["driver", "cloud"] {
        flags.push_str(&format!(" -X {EBS_CSI_MODULE}/pkg/{package}.driverVersion=v{EBS_CSI}"));
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
    fn linked_and_accepted_versions_are_those_that_the_module_pins() {
        let text =
            std::fs::read_to_string(crate::paths::source().join("tests/tools/go.mod")).expect("a go.mod");
        for (module, version) in [
            ("k8s.io/kubernetes", KUBERNETES_VERSION),
            ("sigs.k8s.io/cluster-api", CLUSTER_API),
            ("go.etcd.io/etcd/server/v3", "3.6.14"),
        ] {
            assert!(text.contains(&format!("{module} v{version}")), "go.mod does not pin {module} {version}");
            for program in PROGRAMS.iter().filter(|program| program.package.starts_with(module)) {
                assert!(
                    program.version.is_none_or(|(_, output)| output.ends_with(version)),
                    "{}",
                    program.name
                );
            }
        }
        for program in PROGRAMS {
            assert!(
                text.contains(&format!("\t{}\n", program.package)),
                "go.mod has no tool {}",
                program.package
            );
        }
    }

    #[test]
    fn programs_of_ebs_are_the_releases_that_its_plugin_installs() {
        let source = crate::paths::source();
        let read = |path: &str| std::fs::read_to_string(source.join(path)).expect("a file of the repository");
        let (pins, releases) = (read("tests/tools/go.mod"), read("plugins/aws-ebs-csi/src/versions.rs"));
        // Of the resizer, the module proxy has not got the patch release.
        for (module, version, image) in [
            (EBS_CSI_MODULE, EBS_CSI, "version: \"v1.63.1\""),
            ("github.com/kubernetes-csi/external-provisioner/v6", "6.3.0", "provisioner: \"v6.3.0-"),
            ("github.com/kubernetes-csi/external-attacher/v4", "4.12.0", "attacher: \"v4.12.0-"),
            ("github.com/kubernetes-csi/external-resizer/v2", "2.2.0", "resizer: \"v2.2."),
        ] {
            assert!(
                pins.contains(&format!("{module} v{version} ")),
                "go.mod does not pin {module} {version}"
            );
            assert!(releases.contains(image), "the plugin does not install {image}");
        }
    }

    #[test]
    fn no_two_programs_of_a_build_get_the_same_name() {
        let builds = builds(&PROGRAMS);
        assert_eq!(builds.iter().map(Vec::len).sum::<usize>(), PROGRAMS.len());
        assert_eq!(builds.len(), 3, "Kubernetes and two providers of Cluster API each have a kubeadm");
        for build in builds {
            let names: std::collections::BTreeSet<&str> = build.iter().map(Program::built_as).collect();
            assert_eq!(names.len(), build.len());
        }
        assert_eq!(PROGRAMS[0].built_as(), "server");
    }
}
