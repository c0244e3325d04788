//! A stand-in for the AWS Load Balancer Controller: load balancers for Ingresses and Services, with the real
//! one's tags, finalizers and order, and its webhook endpoint.
//!
//! It knows the annotations for the scheme and the ports and no other, instance targets only, and no groups
//! of Ingresses.

mod deploy;
mod discover;
mod groups;
mod model;
mod targets;
mod webhook;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Service};
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};

use super::aws::Aws;
use super::csi::{gone, worse};
use super::events::Events;
use super::follow::{Changes, Controller, changes, follow};
use super::lease::lead;
use super::log::explain;
use super::stand_in::StandIn;
use model::{Kind, Stack};

const LEASE: &str = "aws-load-balancer-controller-leader";

/// What the flags say of the surroundings.
pub struct Site {
    pub cluster: String,
    pub vpc: String,
    /// Tags of everything that is made.
    pub tags: super::aws::Tags,
}

/// Runs until a right is missing.
///
/// # Errors
/// When a flag is missing, and see [`follow`].
pub async fn run(stand_in: &StandIn) -> Result<()> {
    let flag =
        |name: &str| stand_in.flag(name).map(str::to_owned).with_context(|| format!("--{name} is missing"));
    let aws = stand_in.aws(&flag("aws-region")?);
    let tags =
        stand_in.flag("default-tags").unwrap_or_default().split(',').filter_map(|pair| pair.split_once('='));
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let site = Site { cluster: flag("cluster-name")?, vpc: flag("aws-vpc-id")?, tags };
    let work = async {
        aws.identify().await?;
        lead(stand_in, LEASE, async {
            let events = Events::new(stand_in, "ingress");
            follow(
                stand_in,
                watched(&stand_in.client),
                &LoadBalancers { stand_in, aws: &aws, site: &site, events },
            )
            .await
        })
        .await
    };
    // Every replica serves the webhooks, and none is ready before it does.
    let webhook = webhook::Webhook::open(stand_in)?;
    tokio::select! {
        result = work => result,
        result = webhook.serve() => result,
    }
}

fn watched(client: &Client) -> Vec<Changes> {
    vec![
        changes(Api::<Ingress>::all(client.clone())),
        changes(Api::<IngressClass>::all(client.clone())),
        changes(Api::<Service>::all(client.clone())),
        changes(bindings(client, None)),
        // Heartbeats are Leases; Nodes themselves change seldom.
        changes(Api::<Node>::all(client.clone())),
    ]
}

/// TargetGroupBindings, of one namespace or all.
fn bindings(client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("elbv2.k8s.aws", "v1beta1", "TargetGroupBinding");
    let resource = ApiResource::from_gvk_with_plural(&kind, "targetgroupbindings");
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The controller.
pub struct LoadBalancers<'a> {
    pub stand_in: &'a StandIn,
    pub aws: &'a Aws,
    pub site: &'a Site,
    pub events: Events<'a>,
}

impl Controller for LoadBalancers<'_> {
    async fn reconcile(&self) -> Result<()> {
        let client = || self.stand_in.client.clone();
        let all = ListParams::default();
        let services = Api::<Service>::all(client()).list(&all).await.context("listing services")?.items;
        let ingresses = Api::<Ingress>::all(client()).list(&all).await.context("listing Ingresses")?.items;
        let classes =
            Api::<IngressClass>::all(client()).list(&all).await.context("listing IngressClasses")?.items;
        let mut result = Ok(());
        for ingress in &ingresses {
            let held = ingress.finalizers().iter().any(|held| held == Kind::Ingress.finalizer());
            let class = model::class(ingress, &classes, self.stand_in.flag("ingress-class"));
            if ingress.metadata.deletion_timestamp.is_some() || class.is_none() {
                if held {
                    result = worse(
                        result,
                        self.remove(Kind::Ingress, ingress.object_ref(&()), ingress.finalizers()).await,
                    );
                }
                continue;
            }
            let scheme = match class {
                Some(class) => self.scheme(class).await,
                None => Ok(None),
            };
            let stack = scheme.and_then(|scheme| Stack::of_ingress(ingress, &services, scheme.as_deref()));
            let status =
                ingress.status.as_ref().and_then(|status| serde_json::to_value(&status.load_balancer).ok());
            result = worse(
                result,
                self.keep(Kind::Ingress, ingress.object_ref(&()), ingress.finalizers(), stack, status).await,
            );
        }
        for service in &services {
            let held = service.finalizers().iter().any(|held| held == Kind::Service.finalizer());
            let about = || service.object_ref(&());
            if service.metadata.deletion_timestamp.is_some() || !model::wants_balancer(service) {
                if held {
                    result = worse(result, self.remove(Kind::Service, about(), service.finalizers()).await);
                }
                continue;
            }
            let status =
                service.status.as_ref().and_then(|status| serde_json::to_value(&status.load_balancer).ok());
            result = worse(
                result,
                self.keep(Kind::Service, about(), service.finalizers(), Stack::of_service(service), status)
                    .await,
            );
        }
        worse(result, self.bind().await)
    }
}

impl LoadBalancers<'_> {
    /// The scheme that the class's parameters set for all of its Ingresses.
    async fn scheme(&self, class: &IngressClass) -> Result<Option<String>> {
        let Some(parameters) = class.spec.as_ref().and_then(|spec| spec.parameters.as_ref()) else {
            return Ok(None);
        };
        let kind = GroupVersionKind::gvk("elbv2.k8s.aws", "v1beta1", "IngressClassParams");
        let all: Api<DynamicObject> = Api::all_with(
            self.stand_in.client.clone(),
            &ApiResource::from_gvk_with_plural(&kind, "ingressclassparams"),
        );
        let name = &parameters.name;
        let found = all.get(name).await.with_context(|| format!("reading IngressClassParams {name}"))?;
        Ok(found.data["spec"]["scheme"].as_str().map(str::to_owned))
    }

    async fn keep(
        &self,
        kind: Kind,
        about: ObjectReference,
        finalizers: &[String],
        stack: Result<Stack>,
        status: Option<Value>,
    ) -> Result<()> {
        let built = match stack {
            Ok(stack) => self.discover(&stack).await.map(|subnets| (stack, subnets)),
            Err(error) => Err(error),
        };
        let (stack, subnets) = match built {
            Ok(built) => built,
            Err(error) => {
                self.events
                    .warn(
                        about,
                        "FailedBuildModel",
                        &format!("Failed build model due to {}", explain(&error)),
                    )
                    .await;
                return Err(error);
            }
        };
        self.finalizer(kind, &about, finalizers, true).await?;
        match self.deploy(&stack, &subnets).await {
            Ok(name) => self.report(kind, &about, &name, status).await,
            Err(error) => {
                self.events
                    .warn(
                        about,
                        "FailedDeployModel",
                        &format!("Failed deploy model due to {}", explain(&error)),
                    )
                    .await;
                Err(error)
            }
        }
    }

    async fn remove(&self, kind: Kind, about: ObjectReference, finalizers: &[String]) -> Result<()> {
        let stack = Stack::name_of(kind, &about);
        match self.destroy(&stack).await {
            Ok(()) => self.finalizer(kind, &about, finalizers, false).await,
            Err(error) => {
                self.events
                    .warn(
                        about,
                        "FailedDeployModel",
                        &format!("Failed deploy model due to {}", explain(&error)),
                    )
                    .await;
                Err(error)
            }
        }
    }

    async fn finalizer(
        &self,
        kind: Kind,
        about: &ObjectReference,
        held: &[String],
        wanted: bool,
    ) -> Result<()> {
        let ours = kind.finalizer();
        if held.iter().any(|held| held == ours) == wanted {
            return Ok(());
        }
        let mut kept: Vec<&str> = held.iter().map(String::as_str).filter(|held| *held != ours).collect();
        if wanted {
            kept.push(ours);
        }
        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": about.resource_version}});
        self.patch(kind, about, patch, false).await.context("setting finalizers")
    }

    async fn report(
        &self,
        kind: Kind,
        about: &ObjectReference,
        name: &str,
        status: Option<Value>,
    ) -> Result<()> {
        if status.is_some_and(|status| status["ingress"][0]["hostname"] == *name) {
            return Ok(());
        }
        let patch = json!({"status": {"loadBalancer": {"ingress": [{"hostname": name}]}}});
        self.patch(kind, about, patch, true).await.context("writing the status")
    }

    async fn patch(&self, kind: Kind, about: &ObjectReference, patch: Value, status: bool) -> Result<()> {
        let (namespace, name) =
            (about.namespace.as_deref().unwrap_or_default(), about.name.as_deref().unwrap_or_default());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.stand_in.client.clone(), namespace, &kind.resource());
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let result = if status {
            api.patch_status(name, &parameters, &patch).await
        } else {
            api.patch(name, &parameters, &patch).await
        };
        Ok(gone(result.map(drop))?)
    }
}
