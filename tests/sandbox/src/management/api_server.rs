//! etcd, kube-apiserver and kube-controller-manager of the management cluster.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::certificates::{Authority, Pair, write};
use super::kubeconfig::kubeconfig;
use crate::world::process::{Recipe, Supervisor};
use crate::world::{World, enter};

/// Where kube-apiserver listens inside the world.
pub const SERVER: &str = "https://127.0.0.1:6443";
const ETCD: &str = "http://127.0.0.1:2379";
const ETCD_PEER: &str = "http://127.0.0.1:2380";
/// Lies in no VPC of the bed.
const SERVICES: &str = "172.30.0.0/16";
const ISSUER: &str = "https://kubernetes.default.svc";
const UP_TIMEOUT: Duration = Duration::from_secs(120);

/// A kube-apiserver that answers.
pub struct ApiServer {
    authority: Authority,
    /// The directory its certificates lie in.
    pki: PathBuf,
}

impl ApiServer {
    /// Starts etcd and kube-apiserver, writes the administrator's kubeconfig, and waits until the server is
    /// ready.
    ///
    /// # Errors
    /// When either program ends before that, with the end of its log.
    pub async fn start(world: &World, supervisor: &Supervisor) -> Result<Self> {
        let pki = world.management().join("pki");
        let authority = Authority::new()?;
        write_certificates(&authority, &pki)?;
        let administrator = authority.client("administrator", Some("system:masters"))?.into();
        let text = kubeconfig(SERVER, &authority.certificate, &administrator);
        let administrator = enter::kubeconfig(&world.directory);
        std::fs::write(&administrator, text)
            .with_context(|| format!("writing {}", administrator.display()))?;
        supervisor.start(etcd(world))?;
        supervisor.start(api_server(world, &pki))?;
        wait_until_ready(supervisor, &administrator).await?;
        Ok(Self { authority, pki })
    }

    /// Starts kube-controller-manager, which collects garbage and aggregates roles; it catches up by itself.
    pub fn start_controller_manager(&self, world: &World, supervisor: &Supervisor) -> Result<()> {
        let credentials = self.authority.client("system:kube-controller-manager", None)?.into();
        let text = kubeconfig(SERVER, &self.authority.certificate, &credentials);
        let config = write(&self.pki, "kube-controller-manager.kubeconfig", &text)?;
        let pki = self.pki.display();
        let arguments = [
            format!("--kubeconfig={}", config.display()),
            format!("--authentication-kubeconfig={}", config.display()),
            format!("--authorization-kubeconfig={}", config.display()),
            format!("--service-account-private-key-file={pki}/service-account.key"),
            format!("--root-ca-file={pki}/ca.crt"),
            "--use-service-account-credentials".to_owned(),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
        ];
        let name = "kube-controller-manager";
        supervisor.start(Recipe::new(name, world.tools.program(name)).arguments(arguments))
    }

    /// The authority that signed the server's certificate.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }
}

fn write_certificates(authority: &Authority, pki: &Path) -> Result<()> {
    write(pki, "ca.crt", &authority.certificate)?;
    let names = [
        "127.0.0.1",
        World::BRIDGE_ADDRESS,
        "localhost",
        "kubernetes",
        "kubernetes.default.svc",
        "172.30.0.1",
    ];
    authority.server(&names)?.write(pki, "server")?;
    Pair::signer()?.write(pki, "service-account")
}

fn etcd(world: &World) -> Recipe {
    let data = world.management().join("etcd");
    Recipe::new("etcd", world.tools.program("etcd")).arguments([
        "--name=management".to_owned(),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={ETCD}"),
        format!("--advertise-client-urls={ETCD}"),
        format!("--listen-peer-urls={ETCD_PEER}"),
        format!("--initial-advertise-peer-urls={ETCD_PEER}"),
        format!("--initial-cluster=management={ETCD_PEER}"),
        // The data dies with the world, so nothing is lost by never waiting for the disk.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ])
}

fn api_server(world: &World, pki: &Path) -> Recipe {
    let pki = pki.display();
    Recipe::new("kube-apiserver", world.tools.program("kube-apiserver")).arguments([
        format!("--etcd-servers={ETCD}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=6443".to_owned(),
        format!("--advertise-address={}", World::BRIDGE_ADDRESS),
        // There is one server and no node: nobody asks for its endpoints.
        "--endpoint-reconciler-type=none".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        // As many clusters have it; it shows whether our role may set blocking owner references.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--service-cluster-ip-range={SERVICES}"),
        format!("--client-ca-file={pki}/ca.crt"),
        format!("--tls-cert-file={pki}/server.crt"),
        format!("--tls-private-key-file={pki}/server.key"),
        format!("--service-account-issuer={ISSUER}"),
        format!("--service-account-key-file={pki}/service-account.crt"),
        format!("--service-account-signing-key-file={pki}/service-account.key"),
    ])
}

async fn wait_until_ready(supervisor: &Supervisor, config: &Path) -> Result<()> {
    let kubeconfig = Kubeconfig::read_from(config).context("reading the administrator's kubeconfig")?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("reading the administrator's kubeconfig")?;
    let client = kube::Client::try_from(config).context("building the administrator's client")?;
    let deadline = Instant::now() + UP_TIMEOUT;
    loop {
        let request = kube::core::Request::new("").get("readyz", &kube::api::GetParams::default());
        let request = request.context("building a request")?;
        if client.request_text(request).await.is_ok() {
            return Ok(());
        }
        supervisor.check("etcd")?;
        supervisor.check("kube-apiserver")?;
        if Instant::now() > deadline {
            bail!("kube-apiserver is not ready after {} s", UP_TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
