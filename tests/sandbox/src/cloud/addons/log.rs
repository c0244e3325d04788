//! The logs of add-ons' pods, and errors in the words of those who read them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::Host;
use crate::cloud::machine::root::LOGS;

/// An error in words, of the API server only what it says.
pub fn explain(error: &anyhow::Error) -> String {
    let mut words = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            words.push(status.message.clone());
            break;
        }
        words.push(cause.to_string());
    }
    words.join(": ")
}

/// Writes a line to the log of the pod's stand-in.
pub fn write_line(host: &Host, pod: &Pod, line: &str) {
    tracing::info!(pod = pod.name_any(), "{line}");
    let path = Path::new(LOGS).join(format!("machine-{}-{}.log", host.instance, pod.name_any()));
    let write = || -> Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        writeln!(file, "{} {line}", Timestamp::now()).with_context(|| format!("writing {}", path.display()))
    };
    if let Err(error) = write() {
        tracing::warn!("{error:#}");
    }
}
