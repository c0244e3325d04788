//! What an Ingress or a Service asks for: one load balancer, its listeners and target groups, and their
//! names.
//!
//! Pure. Names have the real one's form, so that nothing has to be remembered.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ObjectReference, Service, ServicePort};
use k8s_openapi::api::networking::v1::{Ingress, IngressBackend, IngressClass};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::{ApiResource, GroupVersionKind};
use sha2::{Digest, Sha256};

const CONTROLLER: &str = "ingress.k8s.aws/alb";
const SERVICE_CLASS: &str = "service.k8s.aws/nlb";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ingress,
    Service,
}

impl Kind {
    /// Keeps the object until its load balancer is gone.
    pub fn finalizer(self) -> &'static str {
        match self {
            Self::Ingress => "ingress.k8s.aws/resources",
            Self::Service => "service.k8s.aws/resources",
        }
    }

    /// First part of the keys of tags and labels.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Ingress => "ingress.k8s.aws",
            Self::Service => "service.k8s.aws",
        }
    }

    /// The type of load balancer, as the API has it.
    pub fn balancer(self) -> &'static str {
        match self {
            Self::Ingress => "application",
            Self::Service => "network",
        }
    }

    /// How objects of the kind are asked for.
    pub fn resource(self) -> ApiResource {
        match self {
            Self::Ingress => ApiResource::from_gvk_with_plural(
                &GroupVersionKind::gvk("networking.k8s.io", "v1", "Ingress"),
                "ingresses",
            ),
            Self::Service => {
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Service"), "services")
            }
        }
    }
}

/// What is known of a stack without its object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub kind: Kind,
    pub namespace: String,
    pub object: String,
}

/// What is to be there for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub name: Name,
    /// `internal` or `internet-facing`.
    pub scheme: String,
    /// Port and protocol, and which of the backends it forwards to.
    pub listeners: Vec<(u16, &'static str, usize)>,
    pub backends: Vec<Backend>,
    /// Paths of the first listener that lead to a backend other than its own.
    pub rules: Vec<(String, usize)>,
}

/// A port of a Service that is a target group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub service: String,
    pub port: IntOrString,
    pub number: i32,
    pub node_port: i32,
    pub protocol: &'static str,
}

impl Name {
    /// The tag `stack`.
    pub fn tag(&self) -> String {
        format!("{}/{}", self.namespace, self.object)
    }

    /// Name of the load balancer and of its security group.
    pub fn balancer(&self, cluster: &str) -> String {
        name(&self.namespace, &self.object, &[cluster, self.kind.prefix(), &self.tag()])
    }

    /// Name of the target group of a backend and of its TargetGroupBinding.
    pub fn target_group(&self, cluster: &str, backend: &Backend) -> String {
        let parts = [
            cluster,
            self.kind.prefix(),
            &self.tag(),
            &backend.service,
            &backend.number.to_string(),
            &backend.node_port.to_string(),
        ];
        name(&self.namespace, &backend.service, &parts)
    }
}

impl Stack {
    /// The name of the stack of an object.
    pub fn name_of(kind: Kind, about: &ObjectReference) -> Name {
        let (namespace, object) =
            (about.namespace.clone().unwrap_or_default(), about.name.clone().unwrap_or_default());
        Name { kind, namespace, object }
    }

    /// What an Ingress asks for; `scheme` is its class's.
    ///
    /// # Errors
    /// When a backend is none.
    pub fn of_ingress(ingress: &Ingress, services: &[Service], scheme: Option<&str>) -> Result<Self> {
        let annotation =
            |key: &str| ingress.annotations().get(&format!("alb.ingress.kubernetes.io/{key}")).cloned();
        let spec = ingress.spec.as_ref().context("the Ingress has no spec")?;
        let rules =
            spec.rules.iter().flatten().filter_map(|rule| rule.http.as_ref()).flat_map(|http| &http.paths);
        let paths: Vec<(String, &IngressBackend)> =
            rules.map(|path| (path.path.clone().unwrap_or_else(|| "/".to_owned()), &path.backend)).collect();
        let mut backends: Vec<Backend> = Vec::new();
        let mut place = |backend: &IngressBackend| -> Result<usize> {
            let found = backend_of(ingress, backend, services)?;
            Ok(backends.iter().position(|known| *known == found).unwrap_or_else(|| {
                backends.push(found);
                backends.len() - 1
            }))
        };
        // The default, if there is one, comes first.
        let first = spec.default_backend.iter().map(&mut place).collect::<Result<Vec<_>>>()?;
        let all = paths
            .iter()
            .map(|(path, backend)| Ok((path.clone(), place(backend)?)))
            .collect::<Result<Vec<_>>>()?;
        let first = first
            .first()
            .or(all.first().map(|(_, index)| index))
            .copied()
            .context("the Ingress has no backend")?;
        let ports: Vec<u16> = match annotation("listen-ports") {
            Some(text) => ports(&text)?,
            None => vec![80],
        };
        Ok(Self {
            name: Name {
                kind: Kind::Ingress,
                namespace: ingress.namespace().unwrap_or_default(),
                object: ingress.name_any(),
            },
            scheme: scheme
                .map(str::to_owned)
                .or_else(|| annotation("scheme"))
                .unwrap_or_else(|| "internal".to_owned()),
            listeners: ports.into_iter().map(|port| (port, "HTTP", first)).collect(),
            rules: all.into_iter().filter(|(_, index)| *index != first).collect(),
            backends,
        })
    }

    /// What a Service asks for.
    ///
    /// # Errors
    /// When it has no node ports yet.
    pub fn of_service(service: &Service) -> Result<Self> {
        let spec = service.spec.as_ref().context("the Service has no spec")?;
        let scheme =
            service.annotations().get("service.beta.kubernetes.io/aws-load-balancer-scheme").cloned();
        let ports = spec.ports.as_deref().unwrap_or_default();
        let backends: Vec<Backend> =
            ports.iter().map(|port| backend(service, port, "TCP")).collect::<Result<_>>()?;
        let listeners = ports
            .iter()
            .zip(0..)
            .map(|(port, index)| Ok((u16::try_from(port.port).context("reading a port")?, "TCP", index)));
        Ok(Self {
            name: Name {
                kind: Kind::Service,
                namespace: service.namespace().unwrap_or_default(),
                object: service.name_any(),
            },
            scheme: scheme.unwrap_or_else(|| "internal".to_owned()),
            listeners: listeners.collect::<Result<_>>()?,
            rules: Vec::new(),
            backends,
        })
    }
}

/// The class of an Ingress, if it is the controller's: by field, or by the annotation of old with the class
/// `flag`.
pub fn class<'a>(
    ingress: &Ingress,
    classes: &'a [IngressClass],
    flag: Option<&str>,
) -> Option<&'a IngressClass> {
    let named = ingress.spec.as_ref().and_then(|spec| spec.ingress_class_name.clone());
    let old = || {
        ingress
            .annotations()
            .get("kubernetes.io/ingress.class")
            .filter(|name| Some(name.as_str()) == flag)
            .cloned()
    };
    let name = named.or_else(old)?;
    let ours = |class: &&IngressClass| {
        class.spec.as_ref().is_some_and(|spec| spec.controller.as_deref() == Some(CONTROLLER))
    };
    classes.iter().find(|class| class.name_any() == name).filter(ours)
}

/// Whether a Service is the controller's.
pub fn wants_balancer(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    let kind = service.annotations().get("service.beta.kubernetes.io/aws-load-balancer-type");
    let asked = spec.load_balancer_class.as_deref() == Some(SERVICE_CLASS)
        || (spec.load_balancer_class.is_none() && kind.is_some_and(|kind| kind == "external"));
    spec.type_.as_deref() == Some("LoadBalancer") && asked
}

fn backend_of(ingress: &Ingress, of: &IngressBackend, services: &[Service]) -> Result<Backend> {
    let reference = of.service.as_ref().context("a backend is no Service")?;
    let same = |service: &&Service| {
        service.namespace() == ingress.namespace() && service.name_any() == reference.name
    };
    let service =
        services.iter().find(same).with_context(|| format!("service {} not found", reference.name))?;
    let wanted = reference.port.as_ref().context("a backend has no port")?;
    let mut ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let port =
        ports.find(|port| wanted.number.map_or(wanted.name == port.name, |number| number == port.port));
    backend(service, port.with_context(|| format!("service {} has no such port", reference.name))?, "HTTP")
}

fn backend(service: &Service, port: &ServicePort, protocol: &'static str) -> Result<Backend> {
    let name = service.name_any();
    let node_port = port.node_port.filter(|port| *port != 0);
    Ok(Backend {
        node_port: node_port.with_context(|| {
            format!("service {name} must be of type NodePort or LoadBalancer for instance targets")
        })?,
        service: name,
        port: IntOrString::Int(port.port),
        number: port.port,
        protocol,
    })
}

/// Reads the annotation `[{"HTTP": 80}, {"HTTP": 8080}]`.
fn ports(text: &str) -> Result<Vec<u16>> {
    let all: Vec<std::collections::BTreeMap<String, u16>> =
        serde_json::from_str(text).context("reading listen-ports")?;
    let ports: Vec<u16> = all
        .iter()
        .flatten()
        .filter(|(protocol, _)| protocol.as_str() == "HTTP")
        .map(|(_, port)| *port)
        .collect();
    ensure!(!ports.is_empty(), "listen-ports has no port for HTTP");
    Ok(ports)
}

/// `k8s-<8>-<8>-<10>`: at most 32 characters, which is what load balancers and target groups can have.
fn name(namespace: &str, object: &str, parts: &[&str]) -> String {
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).take(8).collect::<String>();
    format!("k8s-{}-{}-{}", letters(namespace), letters(object), hash(parts))
}

/// Ten hexadecimal digits.
pub fn hash(parts: &[&str]) -> String {
    Sha256::digest(parts.join("\n")).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    fn service(name: &str, node_port: i32) -> Service {
        object(
            json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"ports": [{"name": "http", "port": 80, "nodePort": node_port}]}}),
        )
    }

    fn ingress() -> Ingress {
        let path = |path: &str, service: &str| json!({"path": path, "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"name": "http"}}}});
        object(json!({
            "metadata": {"name": "front", "namespace": "shop", "annotations": {"alb.ingress.kubernetes.io/scheme": "internet-facing"}},
            "spec": {"ingressClassName": "alb", "rules": [{"http": {"paths": [path("/", "web"), path("/api", "api"), path("/x", "web")]}}]},
        }))
    }

    #[test]
    fn an_ingress_has_a_target_group_per_backend_and_a_default() {
        let services = [service("web", 30080), service("api", 30081)];
        let stack = Stack::of_ingress(&ingress(), &services, None).expect("a stack");
        assert_eq!(stack.scheme, "internet-facing");
        assert_eq!(stack.listeners, [(80, "HTTP", 0)]);
        assert_eq!(
            stack.backends.iter().map(|backend| backend.node_port).collect::<Vec<_>>(),
            [30080, 30081]
        );
        assert_eq!(stack.rules, [("/api".to_owned(), 1)]);
        assert_eq!(
            Stack::of_ingress(&ingress(), &services, Some("internal")).expect("a stack").scheme,
            "internal"
        );
    }

    #[test]
    fn instance_targets_need_a_node_port() {
        let without = object(
            json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": [{"name": "http", "port": 80}]}}),
        );
        let error = Stack::of_ingress(&ingress(), &[without, service("api", 1)], None).expect_err("no stack");
        assert!(error.to_string().contains("NodePort"), "{error}");
    }

    #[test]
    fn names_fit_and_differ_between_clusters() {
        let name = Name {
            kind: Kind::Ingress,
            namespace: "a-long-namespace".to_owned(),
            object: "a-long-name-of-it".to_owned(),
        };
        assert_eq!(name.balancer("one").len(), 32);
        assert!(name.balancer("one").starts_with("k8s-alongnam-alongnam-"));
        assert_ne!(name.balancer("one"), name.balancer("two"));
    }

    #[test]
    fn only_services_of_the_class_are_taken() {
        let of = |class: Value| -> Service {
            object(
                json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "loadBalancerClass": class}}),
            )
        };
        assert!(wants_balancer(&of(json!("service.k8s.aws/nlb"))));
        assert!(!wants_balancer(&of(json!("other"))));
        assert!(!wants_balancer(&of(Value::Null)));
    }
}
