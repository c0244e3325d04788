//! Twenty clusters, of which one answers its API with the worst: how often the other nineteen are looked at
//! beside it, and how much memory the operator takes. The nineteen are one real API server behind nineteen
//! addresses.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use end_to_end::{MOMENT, condition_text, machineless};
use sandbox::answers::{Answer, Server};
use sandbox::{Bed, Options, operator};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const HONEST: usize = 19;
/// Addresses of API servers, all of which the operator may ask.
const RANGE: &str = "127.0.1.0/24";
const HOSTILE: &str = "127.0.1.100:6443";
/// Says how often the hostile one was looked at.
const COUNT: &str = "127.0.1.101:80";
/// The real one.
const API_SERVER: &str = "127.0.0.1:6443";
/// Set for the process that serves these addresses inside the world.
const SERVES: &str = "CLUSTER_OPERATOR_TEST_SERVES";
/// How long looks are counted.
const TIME: Duration = Duration::from_secs(40);
/// How often every honest ClusterPlugin is edited meanwhile: each edit is worth a look.
const EDITS: Duration = Duration::from_secs(2);
/// KiB of data that the operator may have, which is the memory limit of its Deployment.
const LIMIT: usize = 1280 << 10;
/// KiB of memory that the operator may ever take; and those that the hostile one may add, where it is not
/// built as for a release.
const MOST: usize = 120 << 10;
const MAY_ADD: usize = 40 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_nineteen_clusters_fare_as_well_beside_a_hostile_one() -> Result<()> {
    let limited = Limited::make()?;
    let bed = Bed::up(limited.options()).await?;
    let _servers = Servers::start(&bed)?;
    for number in 0..HONEST {
        let server = format!("https://127.0.1.{}:6443", number + 1);
        make(&bed, &format!("honest-{number}"), &server).await?;
    }
    bed.wait_for("all of Calico to be applied in the honest ones", MOMENT, async || {
        for number in 0..HONEST {
            let object = plugin(&bed, &format!("honest-{number}")).await?;
            let text = condition_text(&object, "NetworkingReady");
            // There is no node on which it could run.
            ensure!(text.contains("Deployment tigera-operator/tigera-operator"), "{text}");
        }
        Ok(())
    })
    .await?;
    let (mut alone, before) = (looks(&bed, &honest(), 0).await?, memory(&bed).await?);
    make(&bed, "hostile", &format!("http://{HOSTILE}")).await?;
    bed.wait_for("the hostile one to be asked", MOMENT, async || {
        ensure!(asked(&bed).await? > 0, "not yet");
        Ok(())
    })
    .await?;
    let mut seen = Vec::new();
    // What else runs on the machine takes its part too.
    for _ in 0..3 {
        let all: Vec<String> = honest().into_iter().chain(["hostile".to_owned()]).collect();
        let beside = looks(&bed, &all, HONEST * 4).await?;
        seen.push((alone, beside));
        if beside * 10 >= alone * 9 {
            break;
        }
        pause_hostile(&bed, true).await?;
        alone = looks(&bed, &honest(), HONEST * 4).await?;
        pause_hostile(&bed, false).await?;
    }
    bed.wait_for("the hostile one to be looked at again and again", MOMENT, async || {
        let asked = asked(&bed).await?;
        ensure!(asked > 5, "{asked} times");
        Ok(())
    })
    .await?;
    let (most, asked) = (memory(&bed).await?, asked(&bed).await?);
    println!(
        "looks alone and beside {seen:?}, KiB at most {before} and {most}, the hostile one was asked {asked} times"
    );
    let hostile = condition_text(&plugin(&bed, "hostile").await?, "NetworkingReady");
    ensure!(hostile.starts_with("Unreachable: "), "{hostile}");
    ensure!(seen.last().is_some_and(|(alone, beside)| beside * 10 >= alone * 9), "{seen:?}");
    let may_have = if cfg!(debug_assertions) { before + MAY_ADD } else { MOST };
    ensure!(most <= may_have, "{before} KiB before, {most} beside it");
    let processes = bed.processes().await?;
    ensure!(processes[operator::NAME].restarts == 0, "{:?}", processes[operator::NAME]);
    Ok(())
}

/// A program that runs the operator with no more memory than its Deployment says.
struct Limited(PathBuf);

impl Limited {
    fn make() -> Result<Limited> {
        let limited = Limited(std::env::temp_dir().join(format!("cluster-operator-{}", std::process::id())));
        let script = format!(
            "#!/bin/sh\nulimit -d {LIMIT}\nexec '{}' \"$@\"\n",
            operator::default_program().display()
        );
        std::fs::write(&limited.0, script)?;
        std::fs::set_permissions(&limited.0, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(limited)
    }

    fn options(&self) -> Options {
        let operator_arguments = vec!["--api-server-cidrs".to_owned(), RANGE.to_owned()];
        Options {
            name: "neighbours".into(),
            boots: false,
            operator: Some(self.0.clone()),
            operator_arguments,
            ..Options::default()
        }
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A cluster whose API server is said to be at this URL, and its network of Pods.
async fn make(bed: &Bed, name: &str, server: &str) -> Result<()> {
    let spec = json!({"cloudProvider": {"none": {}}, "networking": {"calico": {}}});
    machineless::make(bed, name, server, spec).await
}

async fn plugin(bed: &Bed, name: &str) -> Result<Value> {
    bed.kubectl_json(&["get", "clusterplugin", name]).await
}

async fn pause_hostile(bed: &Bed, paused: bool) -> Result<()> {
    let patch = json!({"spec": {"paused": paused}}).to_string();
    bed.kubectl(&["patch", "cluster", "hostile", "--type=merge", "--patch", &patch]).await.map(drop)
}

fn honest() -> Vec<String> {
    (0..HONEST).map(|it| format!("honest-{it}")).collect()
}

/// Looks at the honest ones that ended while each of `edited` was edited again and again: at no fewer than
/// `least`.
async fn looks(bed: &Bed, edited: &[String], least: usize) -> Result<usize> {
    let of_hostile = asked(bed).await?;
    let before = ended(bed).await?;
    let began = tokio::time::Instant::now();
    let names: Vec<&str> = edited.iter().map(String::as_str).collect();
    let mut edit = 0;
    while began.elapsed() < TIME {
        edit += 1;
        let value = format!("edit={edit}");
        bed.kubectl(&[&["annotate", "--overwrite", "clusterplugin"], names.as_slice(), &[&value]].concat())
            .await?;
        tokio::time::sleep_until(began + EDITS * edit).await;
    }
    let others = asked(bed).await? - of_hostile;
    let looks = (ended(bed).await? - before).saturating_sub(others);
    ensure!(looks >= least, "{looks} looks, and {others} at the hostile one");
    Ok(looks)
}

/// Looks at ClusterPlugins that ended, whatever came of them.
async fn ended(bed: &Bed) -> Result<usize> {
    let metrics = bed.exec("curl", &["--silent", "--fail", "http://127.0.0.1:8080/metrics"]).await?;
    let lines = metrics
        .lines()
        .filter(|it| it.starts_with("cluster_operator_reconciles_total{controller=\"clusterplugin\""));
    Ok(lines.filter_map(|it| it.rsplit(' ').next()?.parse::<usize>().ok()).sum())
}

/// The most memory that the operator ever had, in KiB.
async fn memory(bed: &Bed) -> Result<usize> {
    let processes = bed.processes().await?;
    let pid = processes.get(operator::NAME).and_then(|it| it.pid).context("the operator does not run")?;
    let status = bed.exec("cat", &[&format!("/proc/{pid}/status")]).await?;
    let most =
        status.lines().find_map(|it| it.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    most.context("Linux says it")
}

/// How often the operator has begun to look at the hostile one: with what add-ons it has.
async fn asked(bed: &Bed) -> Result<usize> {
    let text = bed.exec("curl", &["--silent", "--fail", &format!("http://{COUNT}/")]).await?;
    text.trim().parse().context("a number")
}

/// The process that serves all addresses inside the world.
struct Servers(Child);

impl Servers {
    fn start(bed: &Bed) -> Result<Servers> {
        let program = std::env::current_exe()?;
        let mut command = bed.running().command("nice");
        // What an attack costs the machine that makes it is not what is measured.
        command
            .args(["-n", "19"])
            .arg(program)
            .args(["--exact", "servers", "--nocapture"])
            .env(SERVES, "yes");
        Ok(Servers(
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("starting the servers")?,
        ))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What that process does: nothing, where nobody asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn servers() -> Result<()> {
    if std::env::var_os(SERVES).is_none() {
        return Ok(());
    }
    let (count, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let hostile = Server::at(HOSTILE, move |request| {
        let is_of_operator = !request.contains("\nuser-agent: ");
        let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
        let kinds = [
            kind("configmaps", "ConfigMap"),
            kind("namespaces", "Namespace"),
            kind("serviceaccounts", "ServiceAccount"),
        ];
        match request.lines().next() {
            // Cluster API's managers are not what is measured.
            _ if !is_of_operator => Answer::Text(403, "{}".into()),
            Some("GET /api/v1") => Answer::json(&json!({"kind": "APIResourceList", "resources": kinds})),
            // Every other time it says that there are no add-ons: then some are applied.
            Some(_) if begins_look(request) && looks.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
                Answer::json(&json!({"metadata": {}, "items": []}))
            }
            _ => worst(request, count.fetch_add(1, Ordering::Relaxed)),
        }
    });
    let asked = hostile.await.asked;
    let _count = Server::at(COUNT, move |_| {
        let asked = asked.lock().expect("nobody panicked");
        Answer::Text(200, asked.iter().filter(|it| begins_look(it)).count().to_string())
    })
    .await;
    for number in 0..HONEST {
        let listener = TcpListener::bind(format!("127.0.1.{}:6443", number + 1)).await?;
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(API_SERVER).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    bail!("nobody ended it")
}

fn begins_look(request: &str) -> bool {
    let first = request.lines().next().unwrap_or_default();
    first.starts_with("GET ")
        && first.contains("/configmaps?")
        && !first.contains("continue=")
        && !request.contains("\nuser-agent: ")
}

/// The worst answers, one after the other.
fn worst(request: &str, count: usize) -> Answer {
    let endless =
        |first: &str, again: &str, millis| Answer::chunks(first, again, Duration::from_millis(millis));
    let raw = |first: &str, again: Vec<u8>, pause| Answer::Endless { first: first.into(), again, pause };
    let list = |metadata: &str, item: &str, times: usize| {
        let items = item.repeat(times);
        Answer::Text(
            200,
            format!("{{\"metadata\":{{{metadata}}},\"items\":[{}]}}", items.trim_end_matches(',')),
        )
    };
    match count % 11 {
        // 64 MiB, made as they are sent.
        0 => raw(
            "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n[",
            "0,".repeat(4096).into_bytes(),
            Duration::ZERO,
        ),
        // All that is read of any answer, in values that take the most memory for their text.
        1 => list("\"continue\":\"more\"", "{\"\":0},", 1 << 19),
        2 => endless("{\"a\": \"", &"x".repeat(4096), 0),
        3 => list("", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}},", 100_000),
        4 => Answer::Text(200, "[".repeat(3 << 20)),
        5 => raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", vec![0x1f; 4096], Duration::ZERO),
        6 => raw(
            "HTTP/1.1 307 X\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
            Vec::new(),
            Duration::from_secs(1),
        ),
        // Of a list, the next page is the same again.
        7 if request.contains("limit=") => {
            list("\"continue\":\"more\"", "{\"metadata\":{\"name\":\"a\"}},", 200)
        }
        7 | 8 => raw("HTTP/1.1 200 OK\r\n", b"X: y\r\n".to_vec(), Duration::ZERO),
        // These take as long as they may.
        9 => endless(&format!("{{\"a\": \"{}", "x".repeat(1 << 20)), "x", 50),
        _ => endless("{", " ", 1000),
    }
}
