//! The process inside the world that stands between the operator and the API server of its cluster: it counts
//! writes, kills the operator at one of them, and says which Pods are ready.

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sandbox::answers::{Answer, Server};
use sandbox::{Bed, operator};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{ARGUMENTS, COUNTED, NAME, text};

/// The API server as `kubectl proxy` serves it.
const PROXY: &str = "127.0.1.2:8080";
/// Takes orders of the test.
const ORDERS: &str = "127.0.1.3:8080";
/// Set for the process that serves these addresses inside the world.
const SERVES: &str = "CLUSTER_OPERATOR_TEST_INTERRUPTS";
/// Has the process inside the world do something, and returns what it says.
pub async fn order(bed: &Bed, path: &str) -> Result<String> {
    let url = format!("http://{ORDERS}{path}");
    bed.exec(
        "curl",
        &["--silent", "--fail", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", &url],
    )
    .await
}

/// The process that serves all addresses inside the world.
pub struct Servers(Vec<Child>);

impl Servers {
    pub fn start(bed: &Bed) -> Result<Servers> {
        let (address, port) = PROXY.split_once(':').context("an address")?;
        let mut proxy = bed.running().command("kubectl");
        proxy.arg(format!("--kubeconfig={}", bed.running().kubeconfig().display())).args([
            "proxy",
            "--address",
            address,
            "--port",
            port,
            "--accept-hosts=.*",
            "--reject-paths=^$",
        ]);
        let mut own = bed.running().command(std::env::current_exe()?);
        own.args(["--exact", "servers::servers", "--nocapture"]).env(SERVES, "yes");
        let start = |mut command: std::process::Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("starting the servers")
        };
        Ok(Servers(vec![start(proxy)?, start(own)?]))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the test ordered.
#[derive(Default)]
struct Orders {
    writes: AtomicUsize,
    /// The write at which the operator is killed; 0: none.
    at: AtomicUsize,
    /// Whether that write reaches the API server.
    is_sent: AtomicUsize,
    /// What a workload has to contain to become ready.
    ready: std::sync::Mutex<String>,
}

/// What the process inside the world does: nothing, where nobody asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn servers() -> Result<()> {
    if std::env::var_os(SERVES).is_none() {
        return Ok(());
    }
    let orders = Arc::new(Orders::default());
    let taken = orders.clone();
    let _orders = Server::at(ORDERS, move |request| {
        let path = request.lines().next().and_then(|it| it.strip_prefix("GET /")).unwrap_or_default();
        match path.split_once('/') {
            Some(("ready", what)) => what.clone_into(&mut taken.ready.lock().expect("nobody panicked")),
            Some((when, write)) => {
                taken.writes.store(0, Ordering::SeqCst);
                taken.is_sent.store((when == "after").into(), Ordering::SeqCst);
                taken.at.store(write.parse().unwrap_or_default(), Ordering::SeqCst);
            }
            None => return Answer::Text(200, taken.writes.load(Ordering::SeqCst).to_string()),
        }
        Answer::Text(200, String::new())
    })
    .await;
    let keeper = orders.clone();
    tokio::spawn(async move {
        loop {
            // The API server may not answer yet.
            let _ = keep_pods(&keeper).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let listener = TcpListener::bind(COUNTED).await?;
    while let Ok((near, _)) = listener.accept().await {
        let orders = orders.clone();
        tokio::spawn(async move { relay(near, &orders).await });
    }
    bail!("nobody ended it")
}

/// Relays one connection of the operator, request by request.
async fn relay(near: TcpStream, orders: &Orders) -> Result<()> {
    let far = TcpStream::connect(PROXY).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near, mut back) = near.into_split();
    let (mut answers, mut far) = far.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
    let mut near = BufReader::new(near);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if near.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let small = head.to_lowercase();
        let length = small.lines().find_map(|it| it.strip_prefix("content-length: ")?.trim().parse().ok());
        ensure!(!small.contains("transfer-encoding"), "a body of unknown length");
        let mut body = vec![0; length.unwrap_or(0)];
        near.read_exact(&mut body).await?;
        let is_read =
            small.starts_with("get ") || small.lines().next().unwrap_or_default().contains("dryrun=");
        let is_last =
            !is_read && orders.writes.fetch_add(1, Ordering::SeqCst) + 1 == orders.at.load(Ordering::SeqCst);
        if is_last && orders.is_sent.load(Ordering::SeqCst) == 0 {
            return kill_operator();
        }
        far.write_all(head.as_bytes()).await?;
        far.write_all(&body).await?;
        if is_last {
            // The API server has it by then.
            tokio::time::sleep(Duration::from_millis(300)).await;
            return kill_operator();
        }
    }
}

/// Kills the operator, wherever it runs in this world.
fn kill_operator() -> Result<()> {
    let program = operator::default_program();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        if std::fs::read_link(entry.path().join("exe")).is_ok_and(|it| it == program) {
            let pid = entry.file_name();
            std::process::Command::new("kill").arg("-KILL").arg(pid).status()?;
        }
    }
    Ok(())
}

/// Does what a scheduler and a kubelet of one node would do, and runs nothing: Pods are ready, if theirs is what
/// is to become ready, and gone when they are to go.
async fn keep_pods(orders: &Orders) -> Result<()> {
    let wanted = orders.ready.lock().expect("nobody panicked").clone();
    let now = std::process::Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output()?.stdout;
    let now = String::from_utf8(now)?.trim().to_owned();
    let condition = |kind: &str, is_true: bool| {
        json!({"type": kind, "status": if is_true { "True" } else { "False" }, "lastHeartbeatTime": now,
            "lastTransitionTime": now, "reason": "Said", "message": ""})
    };
    let room = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
    let status = json!({"capacity": room, "allocatable": room, "conditions": [condition("Ready", true)]});
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NAME, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}});
    ask("POST", "/api/v1/nodes", &node.to_string()).await?;
    ask("PATCH", &format!("/api/v1/nodes/{NAME}/status"), &json!({"status": status}).to_string()).await?;
    let path = "/api/v1/namespaces/kube-system/pods";
    for pod in ask("GET", path, "").await?["items"].as_array().into_iter().flatten() {
        let name = text(&pod["metadata"], "name");
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            ask("DELETE", &format!("{path}/{name}?gracePeriodSeconds=0"), "").await?;
            continue;
        }
        if pod["spec"]["nodeName"].is_null() {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": NAME});
            let binding =
                json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
            ask("POST", &format!("{path}/{name}/binding"), &binding.to_string()).await?;
        }
        let spec = pod["spec"].to_string();
        let is_another = ARGUMENTS.iter().any(|it| spec.contains(it)) && !spec.contains(&wanted);
        let is_ready = wanted == "any" || !is_another;
        let said =
            pod["status"]["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
        if said.is_some_and(|it| (it["status"] == "True") == is_ready) {
            continue;
        }
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
            .map(|kind| condition(kind, is_ready || kind == "PodScheduled"));
        let status = json!({"status": {"phase": "Running", "conditions": conditions}});
        ask("PATCH", &format!("{path}/{name}/status"), &status.to_string()).await?;
    }
    Ok(())
}

/// Asks the API server.
async fn ask(method: &str, path: &str, body: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(PROXY).await?;
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, text) = answer.split_once("\r\n\r\n").context("no answer")?;
    serde_json::from_str(text).with_context(|| format!("{method} {path}"))
}
