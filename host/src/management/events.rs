//! Events: what was created, deleted or failed, for `kubectl describe`. They are sent in the background, and
//! dropped rather than waited for when the API is slow: whatever matters is in a condition too.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event as KubeEvent, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use super::{Cached, Management, Watched};
use crate::metrics::Metrics;

/// How many events may wait to be sent.
const WAITING: usize = 1024;
/// The API refuses longer notes.
const NOTE_BYTES: usize = 1000;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Somebody has to act.
    pub warning: bool,
    /// One word in CamelCase, such as `SuccessfulCreate`.
    pub reason: String,
    /// What was done, such as `Create subnet/private-a`: events that agree in this and in `reason` are
    /// counted, not repeated.
    pub action: String,
    pub message: String,
}

pub(super) struct Publish {
    event: Event,
    regarding: ObjectReference,
}

impl Management {
    /// Publishes an event about an object.
    pub fn publish_event<K: Watched>(&self, object: &Cached<K>, event: Event) {
        let regarding = object.object_ref(&());
        if self.0.events.try_send(Publish { event, regarding }).is_err() {
            tracing::debug!("an event was dropped: too many wait to be sent");
        }
    }
}

/// Begins to send events.
pub(super) fn start(client: Client, metrics: Metrics) -> mpsc::Sender<Publish> {
    let (sender, mut receiver) = mpsc::channel::<Publish>(WAITING);
    let recorder = Recorder::new(
        client,
        Reporter { controller: "cluster-operator".into(), instance: std::env::var("POD_NAME").ok() },
    );
    tokio::spawn(async move {
        while let Some(Publish { event, regarding }) = receiver.recv().await {
            let published = KubeEvent {
                type_: if event.warning { EventType::Warning } else { EventType::Normal },
                reason: event.reason,
                note: Some(shortened(event.message)),
                action: event.action,
                secondary: None,
            };
            let reply = super::answer(recorder.publish(&published, &regarding)).await;
            metrics.wrote("Event", "create", result_word(&reply));
            if let Err(error) = reply {
                tracing::debug!(%error, "an event was not taken");
            }
        }
    });
    sender
}

/// How a write ended, in one word for a metric.
pub(super) fn result_word<T>(reply: &Result<T, kube::Error>) -> &'static str {
    match reply {
        Ok(_) => "ok",
        Err(kube::Error::Api(status)) if status.is_conflict() => "conflict",
        Err(kube::Error::Api(status)) if status.is_not_found() => "not-found",
        Err(kube::Error::Api(_)) => "refused",
        Err(_) => "unreachable",
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > NOTE_BYTES {
        text.truncate(text.floor_char_boundary(NOTE_BYTES));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let text = shortened("ä".repeat(600));
        assert_eq!(text.len(), NOTE_BYTES + 3);
        assert!(text.ends_with("ä..."));
    }
}
