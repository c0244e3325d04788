//! The order in which add-ons come and go.

use super::{ALL, CONTROLLER, EBS, EFS, VPC_CNI, check, settings, uninstall};
use crate::common::plans::complete;
use crate::common::request;
use contract::Operation;
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn rules_rights_and_certificates_come_before_objects() {
    let steps = |name: &str| complete(name, &request(settings(name))).steps;
    check(
        &steps(VPC_CNI),
        expect![[r#"
        sg-node-to-node (aws.sg-rule/v1)
        sg-control-plane-to-node (aws.sg-rule/v1)
        sg-control-plane-to-control-plane (aws.sg-rule/v1)
        sg-tcp-below-etcd-node-to-control-plane (aws.sg-rule/v1)
        sg-tcp-above-etcd-node-to-control-plane (aws.sg-rule/v1)
        sg-udp-node-to-control-plane (aws.sg-rule/v1)
        role (aws.iam-role/v1)
        eniconfig-crd (k8s.apply/v1) after sg-node-to-node, sg-control-plane-to-node, sg-control-plane-to-control-plane, sg-tcp-below-etcd-node-to-control-plane, sg-tcp-above-etcd-node-to-control-plane, sg-udp-node-to-control-plane, role
        eniconfig-crd-established (k8s.wait/v1) after eniconfig-crd
        objects (k8s.apply/v1) after eniconfig-crd-established
        running (k8s.wait/v1) after objects
    "#]],
    );
    check(
        &steps(EBS),
        expect![[r#"
        role (aws.iam-role/v2)
        volumesnapshotclasses-crd (k8s.wait/v1)
        volumesnapshotcontents-crd (k8s.wait/v1)
        volumesnapshots-crd (k8s.wait/v1)
        driver (k8s.apply/v1) after role, volumesnapshotclasses-crd, volumesnapshotcontents-crd, volumesnapshots-crd
        controller-available (k8s.wait/v1) after driver
        nodes-ready (k8s.wait/v1) after driver
        storage-class (k8s.apply/v1) after driver
        storage-class-cold (k8s.apply/v1) after driver
    "#]],
    );
    check(
        &steps(EFS),
        expect![[r#"
        role (aws.iam-role/v2)
        driver (k8s.apply/v1) after role
        controller-available (k8s.wait/v1) after driver
        nodes-ready (k8s.wait/v1) after driver
        file-system (aws.efs-file-system/v1)
        storage-class (k8s.apply/v1) after driver, file-system
    "#]],
    );
    check(
        &steps(CONTROLLER),
        expect![[r#"
        certificate (tls.certificate/v1)
        sg-webhook-control-plane-to-node (aws.sg-rule/v1)
        sg-webhook-control-plane-to-control-plane (aws.sg-rule/v1)
        role (aws.iam-role/v1)
        crds (k8s.apply/v1)
        target-group-binding-crd (k8s.wait/v1) after crds
        ingress-class-params-crd (k8s.wait/v1) after crds
        controller (k8s.apply/v1) after certificate, sg-webhook-control-plane-to-node, sg-webhook-control-plane-to-control-plane, role, target-group-binding-crd, ingress-class-params-crd
        controller-available (k8s.wait/v1) after controller
        webhooks (k8s.apply/v1) after certificate, controller-available
        ingress-class (k8s.apply/v1) after controller-available, webhooks
    "#]],
    );
}

#[test]
fn they_leave_in_an_order_that_strands_nothing() {
    check(
        &uninstall(VPC_CNI, json!({})).removal,
        expect![[r#"
        daemonset (k8s.delete/v1)
        cluster-role-binding (k8s.delete/v1) after daemonset
        cluster-role (k8s.delete/v1) after daemonset
        service-account (k8s.delete/v1) after daemonset
    "#]],
    );
    check(
        &uninstall(EBS, json!({})).removal,
        expect![[r#"
        storage-class (k8s.delete/v1)
        controller (k8s.delete/v1) after storage-class
        nodes (k8s.delete/v1) after controller
        csi-driver (k8s.delete/v1) after nodes
        budget (k8s.delete/v1) after controller
        clusterrolebinding-ebs-csi-provisioner-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-attacher-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-resizer-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-snapshotter-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-node-getter-binding (k8s.delete/v1) after nodes
        clusterrole-ebs-external-provisioner-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-attacher-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-resizer-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-snapshotter-role (k8s.delete/v1) after nodes
        clusterrole-ebs-csi-node-role (k8s.delete/v1) after nodes
        rolebinding-ebs-csi-leases-role (k8s.delete/v1) after nodes
        role-ebs-csi-leases-role (k8s.delete/v1) after nodes
        serviceaccount-ebs-csi-controller-sa (k8s.delete/v1) after nodes
        serviceaccount-ebs-csi-node-sa (k8s.delete/v1) after nodes
    "#]],
    );
    check(
        &uninstall(EFS, settings(EFS)).removal,
        expect![[r#"
        storage-class (k8s.delete/v1)
        controller (k8s.delete/v1) after storage-class
        nodes (k8s.delete/v1) after controller
        csi-driver (k8s.delete/v1) after nodes
        clusterrolebinding-efs-csi-provisioner-binding (k8s.delete/v1) after nodes
        clusterrolebinding-efs-csi-node-binding (k8s.delete/v1) after nodes
        clusterrole-efs-csi-external-provisioner-role (k8s.delete/v1) after nodes
        clusterrole-efs-csi-node-role (k8s.delete/v1) after nodes
        rolebinding-efs-csi-leases-role (k8s.delete/v1) after nodes
        role-efs-csi-leases-role (k8s.delete/v1) after nodes
        serviceaccount-efs-csi-controller-sa (k8s.delete/v1) after nodes
        serviceaccount-efs-csi-node-sa (k8s.delete/v1) after nodes
    "#]],
    );
    check(
        &uninstall(CONTROLLER, json!({})).removal,
        expect![[r#"
        mutating-webhooks (k8s.delete/v1)
        validating-webhooks (k8s.delete/v1)
        ingress-class (k8s.delete/v1) after mutating-webhooks, validating-webhooks
        ingress-class-params (k8s.delete/v1) after ingress-class
        controller (k8s.delete/v1) after ingress-class-params
        poddisruptionbudget-aws-load-balancer-controller (k8s.delete/v1) after controller
        service-aws-load-balancer-webhook-service (k8s.delete/v1) after controller
        secret-aws-load-balancer-tls (k8s.delete/v1) after controller
        clusterrolebinding-aws-load-balancer-controller-rolebinding (k8s.delete/v1) after controller
        clusterrole-aws-load-balancer-controller-role (k8s.delete/v1) after controller
        rolebinding-aws-load-balancer-controller-leader-election-rolebinding (k8s.delete/v1) after controller
        role-aws-load-balancer-controller-leader-election-role (k8s.delete/v1) after controller
        serviceaccount-aws-load-balancer-controller (k8s.delete/v1) after controller
    "#]],
    );
    for name in ALL {
        assert!(uninstall(name, json!({})).steps.is_empty(), "{name}");
        let installed = complete(name, &request(settings(name))).removal;
        assert_eq!(installed, uninstall(name, settings(name)).removal, "{name}");
    }
}

#[test]
fn the_network_stays_until_the_machines_go() {
    let mut request = request(json!({}));
    request.operation = Operation::DeleteCluster;
    assert!(complete(VPC_CNI, &request).removal.is_empty());
    assert!(!complete(CONTROLLER, &request).removal.is_empty());
}

#[test]
fn removing_deletes_every_object_but_definitions() {
    for name in ALL {
        let plan = complete(name, &request(settings(name)));
        let removed: Vec<(&Value, &Value)> =
            plan.removal.iter().map(|step| (&step.spec["kind"], &step.spec["name"])).collect();
        for object in plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten() {
            let (kind, object_name) = (&object["kind"], &object["metadata"]["name"]);
            let stays = kind == "CustomResourceDefinition" || kind == "ENIConfig";
            assert_eq!(!stays, removed.contains(&(kind, object_name)), "{name}: {kind} {object_name}");
        }
    }
}
