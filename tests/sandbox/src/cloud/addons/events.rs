//! Events by which a stand-in tells users what keeps it from doing what an object asks for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};

use super::stand_in::StandIn;

/// Whose events.
pub struct Events<'a> {
    stand_in: &'a StandIn,
    component: &'static str,
    /// What was said last, by uid and reason.
    said: Mutex<BTreeMap<(String, String), String>>,
}

impl<'a> Events<'a> {
    /// Events in the name of a component.
    pub fn new(stand_in: &'a StandIn, component: &'static str) -> Self {
        Self { stand_in, component, said: Mutex::default() }
    }

    /// Warns about an object, unless it was said just before; what cannot be said is logged.
    pub async fn warn(&self, about: ObjectReference, reason: &str, message: &str) {
        let key = (about.uid.clone().unwrap_or_default(), reason.to_owned());
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(key, message.to_owned());
        if said.as_deref() == Some(message) {
            return;
        }
        self.stand_in.log(&format!(
            "{} {}: {reason}: {message}",
            about.kind.as_deref().unwrap_or_default(),
            name(&about)
        ));
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let now = Timestamp::now();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", name(&about), now.as_nanosecond())),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: about,
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(1000).collect()),
            type_: Some("Warning".to_owned()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            reporting_component: Some(self.component.to_owned()),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.stand_in.client.clone(), &namespace);
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            self.stand_in.log(&format!("writing an event: {error:#}"));
        }
    }
}

fn name(about: &ObjectReference) -> &str {
    about.name.as_deref().unwrap_or_default()
}
