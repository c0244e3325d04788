//! Twenty clusters, of which one answers with the worst, in a process of their own that may have little memory: how often the other nineteen are
//! read beside it, and how much memory that takes.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plan::addon::ObjectRef;
use serde_json::{Value, json};

use super::WorkloadCluster;
use super::budget::{Budget, LARGE};
use super::fake::{Answer, Server, kinds};

/// Names the ports of the honest and the hostile server to the process that reads.
const PORTS: &str = "CLUSTER_OPERATOR_TEST_PORTS";
const READER: &str = "workload::beside::reader";
/// How long it reads, and how often each cluster is looked at meanwhile.
const TIME: Duration = Duration::from_secs(6);
const EVERY: Duration = Duration::from_millis(400);
/// KiB of data that the process may have, and that the hostile one may ever add to it in memory: an operator has up to 60 MiB itself, and 120
/// with it.
const MAY_HAVE: usize = 512 << 10;
const MAY_ADD: usize = 60 << 10;

/// The worst answers, one after the other.
fn worst(target: &str, count: usize) -> Answer {
    let endless = |first: &str, again: &str, millis| Answer::chunks(first, again, Duration::from_millis(millis));
    let many =
        |text: &str| Answer::Text(200, format!("{{\"metadata\":{{\"continue\":\"more\"}},\"items\":[{}]}}", text.trim_end_matches(',')));
    match count % 9 {
        // 64 MiB, made as they are sent: what tests cost the machine is not what is measured.
        0 => Answer::Endless {
            first: "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n[".into(),
            again: "0,".repeat(4096).into_bytes(),
            pause: Duration::ZERO,
        },
        1 => many(&"{\"\":0},".repeat(LARGE.text / 8)),
        2 => endless("{\"a\": \"", &"x".repeat(4096), 0),
        3 => endless(&format!("{{\"a\": \"{}", "x".repeat(1 << 20)), "x", 50),
        4 => endless("{", " ", 1000),
        5 => many(&"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}},".repeat(100_000)),
        6 => Answer::Text(200, "[".repeat(3 << 20)),
        7 => Answer::Endless {
            first: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".into(),
            again: vec![0x1f; 4096],
            pause: Duration::ZERO,
        },
        // Of a list, the next page is the same again.
        _ if target.contains("limit=") => many(&"{\"metadata\":{\"name\":\"a\"}},".repeat(200)),
        _ => Answer::Endless { first: "HTTP/1.1 200 OK\r\n".into(), again: b"X: y\r\n".into(), pause: Duration::ZERO },
    }
}

fn honest(target: &str) -> Answer {
    let item = |place: usize| json!({"metadata": {"name": format!("a{place}"), "namespace": "b"}, "data": {"text": "x".repeat(1000)}});
    match target {
        "GET /version" => Answer::json(&json!({"gitVersion": "v1.36.3"})),
        _ if target.contains("limit=") => Answer::json(&json!({"metadata": {}, "items": (0..100).map(item).collect::<Vec<Value>>()})),
        _ => Answer::json(&item(0)),
    }
}

/// One look at a cluster: whether all of it was answered.
async fn look(cluster: &WorkloadCluster) -> bool {
    let object = ObjectRef { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: Some("b".into()), name: "a0".into() };
    let listed = cluster.lists().all("v1", "Pod", &["/metadata/name", "/metadata/namespace"]).await.is_ok();
    let (answers, found) = (cluster.answers().await.is_ok(), cluster.get(&object).await.is_ok());
    listed && answers && found
}

/// What the process of its own does: nothing, where nobody asks for it.
#[tokio::test]
async fn reader() {
    let Ok(ports) = std::env::var(PORTS) else { return };
    let ports: Vec<u16> = ports.split(' ').map(|it| it.parse().expect("a port")).collect();
    let budget = Budget::with(Duration::from_secs(2));
    let server = |port: u16| Server { port, asked: Arc::default(), sent: Arc::default() };
    let looks = Arc::new(AtomicUsize::new(0));
    for _ in 0..19 {
        let (cluster, looks) = (server(ports[0]).cluster_in(&budget).await, looks.clone());
        tokio::spawn(async move {
            loop {
                looks.fetch_add(usize::from(look(&cluster).await), Ordering::Relaxed);
                tokio::time::sleep(EVERY).await;
            }
        });
    }
    for port in &ports[1..] {
        let cluster = Arc::new(server(*port).cluster_in(&budget).await);
        for _ in 0..8 {
            let cluster = cluster.clone();
            tokio::spawn(async move {
                loop {
                    look(&cluster).await;
                }
            });
        }
    }
    tokio::time::sleep(TIME).await;
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let most = status.lines().find_map(|it| it.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    println!("looks={} most={}", looks.load(Ordering::Relaxed), most.expect("a number"));
}

/// Looks at the nineteen that were answered, and the most memory that the process had, in KiB.
async fn measure(ports: Vec<u16>) -> (usize, usize) {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let program = std::env::current_exe().expect("this program");
    let limited = format!("ulimit -d {MAY_HAVE} && exec \"$0\" --exact {READER} --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).arg(program).env(PORTS, ports.join(" "));
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("sh runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |name: &str| text.split_whitespace().find_map(|it| it.rsplit_once(name)?.1.parse().ok());
    let found = number("looks=").zip(number("most="));
    found.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nineteen_clusters_are_looked_at_as_often_beside_a_hostile_one() {
    let honest = Server::start(|target| kinds(target).unwrap_or_else(|| honest(target))).await;
    let count = AtomicUsize::new(0);
    let hostile = Server::start(move |target| kinds(target).unwrap_or_else(|| worst(target, count.fetch_add(1, Ordering::Relaxed)))).await;
    let began = Instant::now();
    let mut seen = Vec::new();
    // Other tests keep the machine busy at times.
    for _ in 0..8 {
        let (alone, least) = measure(vec![honest.port]).await;
        let (beside, most) = measure(vec![honest.port, hostile.port]).await;
        seen.push((alone, least, beside, most));
        assert!(most <= least + MAY_ADD, "{seen:?}");
        if beside * 10 >= alone * 9 && alone > 19 {
            println!("{seen:?}");
            assert!(hostile.requests().len() > 20, "it was hardly asked");
            return;
        }
    }
    panic!("{seen:?} after {:?}", began.elapsed());
}
