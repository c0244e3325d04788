//! The volumes of a container that its program reads: projected service account tokens, Secrets, and empty
//! directories.
//!
//! Written below the pod's directory and kept up to date, as a kubelet does. All other volumes are left out:
//! host paths are the machine's own, and nobody looks into the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Pod, Secret, ServiceAccountTokenProjection, Volume};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use tokio::sync::watch;

use super::Host;
use super::log::{explain, write_line};
use super::service_account::{directory, token};
use crate::cloud::process::State;

/// A kubelet's own value, which the API server gives tokens that name none.
const LIFETIME: i64 = 3600;
/// How often Secrets are read again.
const INTERVAL: Duration = Duration::from_secs(20);
/// When what cannot be had yet is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// What is mounted into one container.
pub struct Volumes {
    /// The machine's directory by the container's.
    mounts: Vec<(PathBuf, PathBuf)>,
    volumes: Vec<Volume>,
    /// When a token, by its file, is to be renewed.
    due: Mutex<BTreeMap<PathBuf, Timestamp>>,
}

impl Volumes {
    /// The volumes of a container of the pod; nothing is written yet.
    ///
    /// # Errors
    /// When the pod has no uid.
    pub fn of(pod: &Pod, container: &Container) -> Result<Self> {
        let base = directory(pod)?.join("volumes");
        let all = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mounts = container.volume_mounts.iter().flatten();
        let mounted = |volume: &&Volume| mounts.clone().any(|mount| mount.name == volume.name);
        let volumes: Vec<Volume> = all.filter(mounted).filter(|volume| readable(volume)).cloned().collect();
        let mounts = mounts
            .filter(|mount| volumes.iter().any(|volume| volume.name == mount.name))
            .map(|mount| (PathBuf::from(&mount.mount_path), base.join(&mount.name)))
            .collect();
        Ok(Self { mounts, volumes, due: Mutex::default() })
    }

    /// Waits until they could be written, however long that takes, and says meanwhile what is missing.
    pub async fn obtain(host: &Host, pod: &Pod, container: &Container, state: &watch::Sender<State>) -> Self {
        loop {
            match Self::attempt(host, pod, container).await {
                Ok(volumes) => return volumes,
                Err(error) => {
                    let message = explain(&error);
                    write_line(host, pod, &message);
                    state.send_modify(|state| state.message = Some(message));
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn attempt(host: &Host, pod: &Pod, container: &Container) -> Result<Self> {
        let volumes = Self::of(pod, container)?;
        volumes.write(host, pod).await?;
        Ok(volumes)
    }

    /// The container's directories, and the machine's that are seen there.
    pub fn mounts(&self) -> &[(PathBuf, PathBuf)] {
        &self.mounts
    }

    /// Where a path inside the container is on the machine.
    pub fn path(&self, inside: &str) -> PathBuf {
        let inside = Path::new(inside);
        let found = self
            .mounts
            .iter()
            .find_map(|(mount, source)| Some(source.join(inside.strip_prefix(mount).ok()?)));
        found.unwrap_or_else(|| inside.to_owned())
    }

    /// Writes what is missing or due.
    ///
    /// # Errors
    /// With what a kubelet would say in an event: the Secret that is missing, the token that was refused.
    pub async fn write(&self, host: &Host, pod: &Pod) -> Result<()> {
        let base = directory(pod)?.join("volumes");
        for volume in &self.volumes {
            let target = base.join(&volume.name);
            std::fs::create_dir_all(&target).with_context(|| format!("creating {}", target.display()))?;
            for projection in tokens(volume) {
                self.project(host, pod, projection, &target).await?;
            }
            let secret = volume
                .secret
                .as_ref()
                .and_then(|source| Some((source.secret_name.as_deref()?, source.optional)));
            if let Some((name, optional)) = secret {
                copy(host, pod, name, optional == Some(true), &target)
                    .await
                    .with_context(|| format!("MountVolume.SetUp failed for volume {:?}", volume.name))?;
            }
        }
        Ok(())
    }

    /// Keeps it all up to date, for ever.
    pub async fn maintain(&self, host: &Host, pod: &Pod) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = self.write(host, pod).await {
                tracing::warn!(pod = pod.name_any(), "renewing volumes: {error:#}");
            }
        }
    }

    async fn project(
        &self,
        host: &Host,
        pod: &Pod,
        projection: &ServiceAccountTokenProjection,
        target: &Path,
    ) -> Result<()> {
        let path = target.join(&projection.path);
        let now = Timestamp::now();
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner).get(&path).copied();
        if due.is_some_and(|due| due > now) {
            return Ok(());
        }
        let seconds = projection.expiration_seconds.unwrap_or(LIFETIME);
        let lifetime = Duration::from_secs(seconds.try_into().context("reading the token's lifetime")?);
        let status = token(host, pod, projection.audience.as_deref(), lifetime).await?;
        replace(&path, status.token.as_bytes())?;
        // The API server may give less than was asked for; a kubelet renews after four fifths.
        let lasts = (status.expiration_timestamp.0.as_second() - now.as_second()) * 4 / 5;
        let due = Timestamp::from_second(now.as_second() + lasts).context("adding up times")?;
        self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(path, due);
        Ok(())
    }
}

async fn copy(host: &Host, pod: &Pod, name: &str, optional: bool, target: &Path) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
    let Some(secret) = secrets.get_opt(name).await.with_context(|| format!("reading secret {name:?}"))?
    else {
        anyhow::ensure!(optional, "secret {name:?} not found");
        return Ok(());
    };
    for (key, value) in secret.data.iter().flatten() {
        replace(&target.join(key), &value.0)?;
    }
    Ok(())
}

/// Replaces a file at once, so that nobody reads half of it; leaves one alone that says that already.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let new = path.with_extension("new");
    std::fs::write(&new, content).with_context(|| format!("writing {}", new.display()))?;
    std::fs::rename(&new, path).with_context(|| format!("writing {}", path.display()))
}

fn readable(volume: &Volume) -> bool {
    volume.secret.is_some() || volume.empty_dir.is_some() || tokens(volume).next().is_some()
}

/// The tokens for somebody else than the API server; its own is not read through the volume.
fn tokens(volume: &Volume) -> impl Iterator<Item = &ServiceAccountTokenProjection> {
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    sources
        .filter_map(|source| source.service_account_token.as_ref())
        .filter(|token| token.audience.is_some())
}
