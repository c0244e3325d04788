//! The CustomResourceDefinitions that the controller cannot do without, with the fields that it documents. Values are checked by its webhooks; fields
//! that another release adds are kept. Left out are those of the Gateway API, of Global Accelerator and of target control, whose parts of
//! the controller stay off.

use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const GROUP: &str = "elbv2.k8s.aws";

const fn crd(name: &'static str) -> Object<'static> {
    Object { api_version: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", namespace: None, name }
}

pub const TARGET_GROUP_BINDING: Object<'static> = crd("targetgroupbindings.elbv2.k8s.aws");
pub const INGRESS_CLASS_PARAMS: Object<'static> = crd("ingressclassparams.elbv2.k8s.aws");

pub fn objects() -> Vec<Value> {
    vec![target_group_binding(), ingress_class_params()]
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// An object with these fields and possibly more.
fn open(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": true })
}

fn pair() -> Value {
    json!({ "type": "object", "required": ["key", "value"], "properties": { "key": text(), "value": text() } })
}

fn selector() -> Value {
    json!({
        "type": "object",
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": text() },
            "matchExpressions": list(json!({
                "type": "object",
                "required": ["key", "operator"],
                "properties": { "key": text(), "operator": text(), "values": list(text()) },
            })),
        },
    })
}

fn definition(object: Object<'_>, scope: &str, names: [&str; 3], columns: &[(&str, &str)], spec: Value, status: Option<Value>) -> Value {
    let [kind, plural, singular] = names;
    let list_kind = [kind, "List"].concat();
    let column = |(name, path): &(&str, &str)| json!({ "name": name, "type": "string", "jsonPath": path });
    let mut columns: Vec<Value> = columns.iter().map(column).collect();
    columns.push(json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }));
    let mut version = json!({
        "name": "v1beta1", "served": true, "storage": true,
        "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "properties": { "apiVersion": text(), "kind": text(), "metadata": { "type": "object" }, "spec": spec },
        } },
    });
    if let Some(status) = status {
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
        version["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": object.api_version, "kind": object.kind, "metadata": { "name": object.name },
        "spec": {
            "group": GROUP, "scope": scope,
            "names": { "kind": kind, "listKind": list_kind, "plural": plural, "singular": singular },
            "versions": [version],
        },
    })
}

/// Which targets a target group has. The controller makes one for each target group that an Ingress or Service needs.
fn target_group_binding() -> Value {
    let port = json!({ "x-kubernetes-int-or-string": true });
    let peer = open(json!({
        "ipBlock": { "type": "object", "required": ["cidr"], "properties": { "cidr": text() } },
        "securityGroup": { "type": "object", "required": ["groupID"], "properties": { "groupID": text() } },
    }));
    let ingress = open(json!({
        "from": list(peer),
        "ports": list(open(json!({ "protocol": { "type": "string", "enum": ["TCP", "UDP"] }, "port": port }))),
    }));
    let mut spec = open(json!({
        "targetGroupARN": text(),
        "targetGroupName": text(),
        "targetType": { "type": "string", "enum": ["instance", "ip"] },
        "targetGroupProtocol": text(),
        "serviceRef": { "type": "object", "required": ["name", "port"], "properties": { "name": text(), "port": port } },
        "networking": open(json!({ "ingress": list(ingress) })),
        "nodeSelector": selector(),
        "ipAddressType": { "type": "string", "enum": ["ipv4", "ipv6"] },
        "vpcID": text(),
        "multiClusterTargetGroup": { "type": "boolean" },
        "iamRoleArnToAssume": text(),
        "assumeRoleExternalId": text(),
    }));
    spec["required"] = json!(["serviceRef"]);
    let status = open(json!({ "observedGeneration": { "type": "integer", "format": "int64" } }));
    let columns =
        [("Service-Name", ".spec.serviceRef.name"), ("Service-Port", ".spec.serviceRef.port"), ("Target-Type", ".spec.targetType")];
    let names = ["TargetGroupBinding", "targetgroupbindings", "targetgroupbinding"];
    definition(TARGET_GROUP_BINDING, "Namespaced", names, &columns, spec, Some(status))
}

/// What all load balancers of the Ingresses of a class have in common.
fn ingress_class_params() -> Value {
    let spec = open(json!({
        "namespaceSelector": selector(),
        "group": { "type": "object", "required": ["name"], "properties": { "name": text() } },
        "scheme": { "type": "string", "enum": ["internal", "internet-facing"] },
        "loadBalancerName": text(),
        "ipAddressType": { "type": "string", "enum": ["ipv4", "dualstack", "dualstack-without-public-ipv4"] },
        "targetType": { "type": "string", "enum": ["instance", "ip"] },
        "inboundCIDRs": list(text()),
        "certificateArn": list(text()),
        "sslPolicy": text(),
        "sslRedirectPort": text(),
        "subnets": open(json!({ "ids": list(text()), "tags": { "type": "object", "additionalProperties": list(text()) } })),
        "tags": list(pair()),
        "loadBalancerAttributes": list(pair()),
        "wafv2AclArn": text(),
        "wafv2AclName": text(),
    }));
    let columns = [("Group-Name", ".spec.group.name"), ("Scheme", ".spec.scheme"), ("IP-Address-Type", ".spec.ipAddressType")];
    let names = ["IngressClassParams", "ingressclassparams", "ingressclassparams"];
    definition(INGRESS_CLASS_PARAMS, "Cluster", names, &columns, spec, None)
}
