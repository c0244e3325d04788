//! Volumes of Pods: their own, and of the machine what is granted.

use super::pods::{base, deployment, of};
use super::*;

/// What is denied of a volume that nobody mounts.
fn of_volume(volume: Value) -> Vec<String> {
    let mut whole = json!({"name": "a"});
    whole.as_object_mut().expect("an object").extend(volume.as_object().cloned().expect("an object"));
    of(json!({"volumes": [whole]})).into_iter().map(|it| it.replace("volumes[0].", "")).collect()
}

#[test]
fn files_of_the_machine_are_granted_by_path_and_use() {
    let pod = |path: &str, read_only: bool| {
        let mounts = json!([{"name": "a", "mountPath": "/a", "readOnly": read_only}]);
        json!({"volumes": [{"name": "a", "hostPath": {"path": path}}], "containers": [{"name": "a", "image": "quay.io/tigera/a", "volumeMounts": mounts}]})
    };
    let with = |path: &str, read_only: bool, pod: Value| {
        let mut grants = base();
        grants["pods"] = json!({"hostPaths": [{"path": path, "readOnly": read_only}]});
        denied_of(deployment(pod), grants).len()
    };
    assert_eq!(
        of(pod("/etc/kubernetes/pki", true)),
        [
            r#"volumes[0].hostPath: path "/etc/kubernetes/pki" of the machine, read-only, is not granted <- grants.pods.hostPaths: [{path: /etc/kubernetes/pki, readOnly: true}]"#
        ]
    );
    assert_eq!(of(pod("/", false)).len(), 1);
    for path in ["/var/lib/a/../b", "relative", ""] {
        let said = of(pod(path, false));
        assert_eq!(said, [format!("volumes[0].hostPath: path {path:?} is not granted <- nothing")]);
    }
    for (granted, path, denials) in [
        ("/var/lib", "/var/lib/a", 0),
        ("/var/lib/", "//var/./lib", 0),
        ("/var/lib", "/var/library", 1),
        ("/", "/etc", 0),
        ("/a/b", "/a", 1),
    ] {
        assert_eq!(with(granted, false, pod(path, false)), denials, "{granted} {path}");
    }
    assert_eq!([with("/a", true, pod("/a", true)), with("/a", true, pod("/a", false))], [0, 1]);
    assert_eq!(with("/a", false, pod("/a", true)), 0);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "own"}, "spec": {"podSpec": pod("/a", true)}});
    let unread = json!({"objects": [{"group": "example.com", "kinds": ["Widget"], "namespaces": ["own"], "unread": true}],
        "registries": ["quay.io/tigera"], "pods": {"hostPaths": [{"path": "/a", "readOnly": true}]}});
    assert_eq!(denied_of(widget, unread).len(), 1, "somebody else may mount it to write");
    let mut two = pod("/a", true);
    two["initContainers"] = pod("/a", false)["containers"].clone();
    assert_eq!(with("/a", true, two), 1, "one of two containers writes");
}

#[test]
fn only_ones_own_volumes_are_mounted() {
    let sources = [
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "iscsi",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    ];
    for source in sources {
        assert_eq!(of_volume(json!({source: {"a": "b"}})), [format!("{source} is not granted <- nothing")]);
    }
    let read = |kind: &str, name: &str| {
        format!(
            "{kind} {name} of v1 in namespace own is not granted <- grants.reads: [{{group: \"\", kinds: [{kind}], names: [{name}], namespaces: [own]}}]"
        )
    };
    assert_eq!(
        of_volume(json!({"persistentVolumeClaim": {"claimName": "database"}})),
        [read("PersistentVolumeClaim", "database")]
    );
    assert_eq!(of_volume(json!({"configMap": {"name": "other"}})), [read("ConfigMap", "other")]);
    assert_eq!(of_volume(json!({"secret": {"secretName": "token"}})), [read("Secret", "token")]);
    assert_eq!(
        of_volume(json!({"csi": {"driver": "a", "nodePublishSecretRef": {"name": "token"}}})),
        ["csi: csi of a Pod is not granted <- grants.pods.fields: [csi]".to_owned(), read("Secret", "token")]
    );
    assert_eq!(
        of_volume(json!({"nfs": {"server": "10.0.0.1", "path": "/"}})),
        ["nfs: nfs of a Pod is not granted <- grants.pods.fields: [nfs]"]
    );
    assert_eq!(
        of_volume(json!({"image": {"reference": "evil.example.com/a/b:v1"}})),
        [
            "image evil.example.com/a/b:v1 comes from a registry that is not granted <- grants.registries: [evil.example.com/a]"
        ]
    );
    let claim = json!({"spec": {"volumeName": "pv-of-others", "dataSource": {"kind": "PersistentVolumeClaim", "name": "database"}}});
    assert_eq!(
        of_volume(json!({"ephemeral": {"volumeClaimTemplate": claim}})),
        [
            "ephemeral.volumeClaimTemplate.spec.dataSource: PersistentVolumeClaim.dataSource is not granted <- grants.fields: [PersistentVolumeClaim.dataSource]",
            "ephemeral.volumeClaimTemplate.spec.volumeName: PersistentVolumeClaim.volumeName is not granted <- grants.fields: [PersistentVolumeClaim.volumeName]",
        ]
    );
    let projected = |source: Value| of_volume(json!({"projected": {"sources": [source]}}));
    for audience in ["sts.amazonaws.com", "https://kubernetes.default.svc", "vault"] {
        let granted = if audience.contains(':') { format!("{audience:?}") } else { audience.to_owned() };
        assert_eq!(
            projected(json!({"serviceAccountToken": {"audience": audience, "path": "t"}})),
            [format!(
                "projected.sources[0].serviceAccountToken.audience: a token for {audience:?} is not granted <- grants.pods.tokenAudiences: [{granted}]"
            )]
        );
    }
    assert_eq!(projected(json!({"secret": {"name": "token"}})), [read("Secret", "token")]);
    assert_eq!(
        projected(json!({"clusterTrustBundle": {"signerName": "a", "path": "b"}})),
        [
            "projected.sources[0].clusterTrustBundle: clusterTrustBundle of a Pod is not granted <- grants.pods.fields: [clusterTrustBundle]"
        ]
    );
    assert_eq!(
        projected(json!({"podCertificate": {"signerName": "a"}})),
        ["projected.sources[0].podCertificate is not known <- nothing"]
    );
}
