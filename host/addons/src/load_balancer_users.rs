//! What of a workload cluster has load balancers in AWS: Gateways, Ingresses, Services, and what binds
//! Pods to target groups. It is decided from lists of the API server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Inventory, ObjectRef};

const INGRESS_CONTROLLER: &str = "ingress.k8s.aws/alb";
const INGRESS_FINALIZERS: [&str; 2] = ["ingress.k8s.aws/resources", "group.ingress.k8s.aws/"];
const GATEWAY_CONTROLLERS: &str = "gateway.k8s.aws/";
const SERVICE_CLASS: &str = "service.k8s.aws/nlb";
const SERVICE_FINALIZER: &str = "service.k8s.aws/resources";
/// Of the cloud provider: an old Service's load balancer is still being deleted.
const CLOUD_PROVIDER_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Lists as the API server gave them; a kind that it does not serve is an empty list.
#[derive(Clone, Debug, Default)]
pub struct ObservedExposure {
    pub gateways: Vec<Value>,
    pub gateway_classes: Vec<Value>,
    pub ingresses: Vec<Value>,
    pub ingress_classes: Vec<Value>,
    pub services: Vec<Value>,
    pub target_group_bindings: Vec<Value>,
}

/// An object that has something in AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    pub object: ObjectRef,
    /// Somebody has asked for its deletion already.
    pub is_deleting: bool,
}

/// Whatever has, or may get, a load balancer, whoever makes it, in the order in which it is to be deleted.
pub fn load_balanced(observed: &ObservedExposure) -> Vec<Exposure> {
    let gateways = gateways(observed).map(|it| exposure("gateway.networking.k8s.io/v1", "Gateway", it));
    let ingresses = ingresses(observed).map(|it| exposure("networking.k8s.io/v1", "Ingress", it));
    let is_open = |it: &&Value| {
        text(it, "/spec/type") == "LoadBalancer"
            || is_of_controller(it)
            || has_finalizer(it, CLOUD_PROVIDER_FINALIZER)
    };
    let services = observed.services.iter().filter(is_open).map(|it| exposure("v1", "Service", it));
    gateways.chain(ingresses).chain(services).collect()
}

/// What binds Pods to target groups. Most of it goes with what is load-balanced; what users made themselves
/// is left.
pub fn target_group_bindings(observed: &ObservedExposure) -> Vec<Exposure> {
    observed
        .target_group_bindings
        .iter()
        .map(|it| exposure("elbv2.k8s.aws/v1beta1", "TargetGroupBinding", it))
        .collect()
}

/// What only the AWS Load Balancer Controller can serve and remove.
pub fn used_by_ingress_controller(observed: &ObservedExposure) -> Vec<ObjectRef> {
    let services =
        observed.services.iter().filter(|it| is_of_controller(it)).map(|it| exposure("v1", "Service", it));
    let gateways = gateways(observed).map(|it| exposure("gateway.networking.k8s.io/v1", "Gateway", it));
    let ingresses = ingresses(observed).map(|it| exposure("networking.k8s.io/v1", "Ingress", it));
    gateways
        .chain(ingresses)
        .chain(services)
        .chain(target_group_bindings(observed))
        .map(|it| it.object)
        .collect()
}

/// What names classes of Ingresses and Gateways that an add-on applied: nobody else would serve it.
pub fn used_by_classes(installed: &Inventory, observed: &ObservedExposure) -> Vec<ObjectRef> {
    let applied = |kind: &str| -> BTreeSet<&str> {
        installed.objects.iter().filter(|it| it.kind == kind).map(|it| it.name.as_str()).collect()
    };
    let (of_ingresses, of_gateways) = (applied("IngressClass"), applied("GatewayClass"));
    let class = |it: &Value| {
        let annotated = it.pointer("/metadata/annotations").and_then(|it| it.get(CLASS_ANNOTATION));
        let annotated = annotated.and_then(Value::as_str).unwrap_or_default();
        of_ingresses.contains(text(it, "/spec/ingressClassName")) || of_ingresses.contains(annotated)
    };
    let ingresses = observed.ingresses.iter().filter(|it| class(it));
    let gateways =
        observed.gateways.iter().filter(|it| of_gateways.contains(text(it, "/spec/gatewayClassName")));
    let ingresses = ingresses.map(|it| exposure("networking.k8s.io/v1", "Ingress", it));
    let gateways = gateways.map(|it| exposure("gateway.networking.k8s.io/v1", "Gateway", it));
    gateways.chain(ingresses).map(|it| it.object).collect()
}

fn gateways(observed: &ObservedExposure) -> impl Iterator<Item = &Value> {
    let classes = observed
        .gateway_classes
        .iter()
        .filter(|it| text(it, "/spec/controllerName").starts_with(GATEWAY_CONTROLLERS));
    let classes: BTreeSet<&str> = classes.map(|it| text(it, "/metadata/name")).collect();
    let is_class = move |name: &str| classes.contains(name);
    observed.gateways.iter().filter(move |it| {
        is_class(text(it, "/spec/gatewayClassName")) || has_finalizer(it, GATEWAY_CONTROLLERS)
    })
}

fn ingresses(observed: &ObservedExposure) -> impl Iterator<Item = &Value> {
    let classes =
        observed.ingress_classes.iter().filter(|it| text(it, "/spec/controller") == INGRESS_CONTROLLER);
    let classes: BTreeSet<&str> = classes.map(|it| text(it, "/metadata/name")).collect();
    let is_class = move |name: &str| classes.contains(name);
    observed.ingresses.iter().filter(move |it| {
        let annotated = it
            .pointer("/metadata/annotations")
            .and_then(|it| it.get(CLASS_ANNOTATION))
            .and_then(Value::as_str);
        is_class(text(it, "/spec/ingressClassName"))
            || annotated.is_some_and(|name| name == "alb" || is_class(name))
            || INGRESS_FINALIZERS.iter().any(|finalizer| has_finalizer(it, finalizer))
    })
}

fn is_of_controller(service: &Value) -> bool {
    text(service, "/spec/loadBalancerClass") == SERVICE_CLASS || has_finalizer(service, SERVICE_FINALIZER)
}

/// A finalizer that begins like this: groups of Ingresses and kinds of Gateways have names of their own.
fn has_finalizer(object: &Value, prefix: &str) -> bool {
    let all = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).any(|it| it.starts_with(prefix))
}

fn exposure(api_version: &str, kind: &str, object: &Value) -> Exposure {
    Exposure { object: named(api_version, kind, object), is_deleting: is_deleting(object) }
}

/// An item of a list: the API server leaves out what is the same for all of them.
pub(super) fn named(api_version: &str, kind: &str, object: &Value) -> ObjectRef {
    ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned),
        name: text(object, "/metadata/name").to_owned(),
    }
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The text at a place; empty when there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Up to ten names, and how many more there are.
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, finalizers: &[&str], spec: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop", "finalizers": finalizers}, "spec": spec})
    }

    fn observed() -> ObservedExposure {
        let mut annotated = object("annotated", &[], json!({}));
        annotated["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "alb"});
        let mut going = object("going", &["group.ingress.k8s.aws/shop"], json!({}));
        going["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
        ObservedExposure {
            gateways: vec![
                object("ours", &[], json!({"gatewayClassName": "aws"})),
                object("orphan", &["gateway.k8s.aws/nlb"], json!({"gatewayClassName": "gone"})),
                object("mesh", &[], json!({"gatewayClassName": "istio"})),
            ],
            gateway_classes: vec![
                json!({"metadata": {"name": "aws"}, "spec": {"controllerName": "gateway.k8s.aws/alb"}}),
                json!({"metadata": {"name": "istio"}, "spec": {"controllerName": "istio.io/gateway-controller"}}),
            ],
            ingresses: vec![
                object("classed", &[], json!({"ingressClassName": "public"})),
                annotated,
                going,
                object("nginx", &[], json!({"ingressClassName": "nginx"})),
            ],
            ingress_classes: vec![
                json!({"metadata": {"name": "public"}, "spec": {"controller": "ingress.k8s.aws/alb"}}),
                json!({"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}),
            ],
            services: vec![
                object("web", &[], json!({"type": "LoadBalancer"})),
                object(
                    "fast",
                    &["service.k8s.aws/resources"],
                    json!({"type": "LoadBalancer", "loadBalancerClass": "service.k8s.aws/nlb"}),
                ),
                object(
                    "was-open",
                    &["service.kubernetes.io/load-balancer-cleanup"],
                    json!({"type": "ClusterIP"}),
                ),
                object("inner", &[], json!({"type": "ClusterIP"})),
            ],
            target_group_bindings: vec![object("own", &[], json!({}))],
        }
    }

    fn names(objects: impl IntoIterator<Item = ObjectRef>) -> String {
        objects.into_iter().map(|it| it.to_string()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn gateways_go_before_ingresses_and_ingresses_before_services() {
        expect_test::expect![[r#"
            Gateway shop/ours
            Gateway shop/orphan
            Ingress shop/classed
            Ingress shop/annotated
            Ingress shop/going
            Service shop/web
            Service shop/fast
            Service shop/was-open"#]]
        .assert_eq(&names(load_balanced(&observed()).into_iter().map(|it| it.object)));
        let going: Vec<bool> = load_balanced(&observed()).iter().map(|it| it.is_deleting).collect();
        assert_eq!(going, [false, false, false, false, true, false, false, false]);
    }

    #[test]
    fn services_of_the_cloud_provider_do_not_use_the_ingress_controller() {
        expect_test::expect![[r#"
            Gateway shop/ours
            Gateway shop/orphan
            Ingress shop/classed
            Ingress shop/annotated
            Ingress shop/going
            Service shop/fast
            TargetGroupBinding shop/own"#]]
        .assert_eq(&names(used_by_ingress_controller(&observed())));
        assert_eq!(
            used_by_ingress_controller(&ObservedExposure {
                services: vec![observed().services[0].clone()],
                ..ObservedExposure::default()
            }),
            []
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (1..=12).map(|it| it.to_string()).collect();
        assert_eq!(listed(&names), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
    }
}
