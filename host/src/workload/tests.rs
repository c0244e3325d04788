//! A workload cluster that answers anything at all can do nothing to the operator but be reported.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;

use super::budget::{Budget, LARGE};
use super::fake::{self, Answer, Server, kinds};
use super::*;

/// What fits into the buffers of two sockets: it is sent, and nobody reads it.
const BUFFERS: usize = 12 << 20;

fn config_map() -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("a".into()),
        name: "b".into(),
    }
}

/// What becomes of reading a ConfigMap that is answered like this: the error, what was sent, and how long it
/// took.
async fn read(answer: impl Fn() -> Answer + Send + Sync + 'static) -> (String, usize, Duration) {
    read_with(&Budget::default(), answer).await
}

async fn read_with(
    budget: &Budget,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> (String, usize, Duration) {
    let server = Server::start(move |target| kinds(target).unwrap_or_else(&answer)).await;
    let cluster = fake::cluster_in(&server, budget).await;
    let began = Instant::now();
    let found = cluster.get(&config_map()).await.map(|live| live.map_or(0, |it| it.to_string().len()));
    (found.expect_err("it is no answer").to_string(), server.sent.load(Ordering::Relaxed), began.elapsed())
}

#[tokio::test]
async fn an_answer_of_zeros_is_given_up_before_it_is_in_memory() {
    let (error, sent, _) = read(|| Answer::Text(200, format!("[{}0]", "0,".repeat(32 << 20)))).await;
    assert_eq!(error, "the API server cannot be reached: its answer is larger than any should be");
    assert!(sent < LARGE.text + BUFFERS, "{sent}");
}

#[tokio::test]
async fn small_values_that_take_much_room_are_given_up_early() {
    for each in ["0,", "\"\",", "{\"\":0},", "[],", "[0],"] {
        let text = format!("{{\"data\":[{}0]}}", each.repeat((LARGE.text - 100) / each.len()));
        let (error, ..) = read(move || Answer::Text(200, text.clone())).await;
        assert_eq!(
            error, "the API server cannot be reached: its answer is larger than any should be",
            "{each}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_end_ends() {
    let (error, sent, _) = read(|| Answer::chunks("{\"a\": \"", &"x".repeat(4096), Duration::ZERO)).await;
    assert_eq!(error, "the API server cannot be reached: its answer is larger than any should be");
    assert!(sent < LARGE.text + BUFFERS, "{sent}");
}

#[tokio::test]
async fn an_answer_that_trickles_is_none() {
    let (pause, budget) = (Duration::from_millis(100), Budget::with(Duration::from_secs(2)));
    let slow_head = || Answer::Endless {
        first: "HTTP/1.1 200 OK\r\n".into(),
        again: b"X: y\r\n".into(),
        pause: Duration::from_millis(100),
    };
    let trickle = read_with(&budget, move || Answer::chunks("{", " ", pause)).await;
    for (error, _, took) in [trickle, read_with(&budget, slow_head).await] {
        assert_eq!(error, "the API server cannot be reached: its answer takes too long");
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

#[tokio::test]
async fn what_is_nested_without_end_is_no_answer() {
    let (error, ..) = read(|| Answer::Text(200, "[".repeat(3 << 20))).await;
    assert!(error.contains("is no JSON, or nested too deep"), "{error}");
}

#[tokio::test]
async fn nobody_else_is_asked_instead() {
    let other = Server::start(|_| Answer::json(&json!({}))).await;
    let place = format!("http://127.0.0.1:{}/", other.port);
    let (error, ..) = read(move || Answer::Endless {
        first: format!("HTTP/1.1 307 X\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"),
        again: Vec::new(),
        pause: Duration::from_secs(1),
    })
    .await;
    assert_eq!(
        error,
        "the API server cannot be reached: it answers with HTTP 307, and whatever place it names is not \
         asked instead"
    );
    assert_eq!(other.requests(), [""; 0]);
}

#[tokio::test]
async fn nothing_compressed_is_asked_for_or_taken() {
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n";
    let bomb = move || Answer::Endless { first: head.into(), again: vec![0x1f, 0x8b], pause: Duration::ZERO };
    let server = Server::start(move |target| kinds(target).unwrap_or_else(bomb)).await;
    let error =
        fake::cluster(&server).await.get(&config_map()).await.expect_err("it is not read").to_string();
    assert_eq!(
        error,
        "the API server cannot be reached: its answer is compressed, and it was not asked to do so"
    );
    let asked = server.asked.lock().expect("nobody panicked");
    assert!(asked.iter().all(|it| !it.contains("accept-encoding")), "{asked:?}");
}

#[tokio::test]
async fn of_a_refusal_only_the_message_is_shown_in_one_line_and_in_quotes() {
    let long = format!("no\n\tway \"{}\"", "x".repeat(40_000));
    let causes = json!([{"field": "spec.selector", "message": "secret"}, {"field": "\u{1b}[31m"}]);
    let status = json!({"kind": "Status", "message": long, "reason": "secret", "details": {"causes": causes,
        "name": "secret"}});
    let server =
        Server::start(move |target| kinds(target).unwrap_or_else(|| Answer::Text(422, status.to_string())))
            .await;
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "a"}});
    let refused = fake::cluster(&server).await.apply(&object, "me", false).await.expect_err("it is refused");
    let text = refused.to_string();
    assert!(
        text.starts_with("ConfigMap a/b: \"no way 'xxx") && text.ends_with("...\"") && text.len() < 1100,
        "{text}"
    );
    assert!(matches!(refused, WorkloadError::Refused { fields, .. } if fields == ["spec.selector", "?"]));
    let endless = read(|| Answer::Endless {
        first: "HTTP/1.1 500 X\r\n\r\n".into(),
        again: vec![b' '; 4096],
        pause: Duration::ZERO,
    })
    .await;
    assert_eq!(endless.0, "ConfigMap a/b: HTTP 500");
}

/// Answers a page of a list as an honest server does: no more than is asked for, from where the token says.
fn page(target: &str, count: usize, item: impl Fn(usize) -> Value) -> Answer {
    let of = |name: &str| {
        let query = target.split_once('?').map_or("", |it| it.1);
        query.split('&').find_map(|it| it.strip_prefix(name)?.parse::<usize>().ok())
    };
    let begin = of("continue=").unwrap_or(0);
    let end = count.min(begin + of("limit=").unwrap_or(count));
    let next = if end < count { end.to_string() } else { String::new() };
    Answer::json(
        &json!({"metadata": {"continue": next}, "items": (begin..end).map(item).collect::<Vec<_>>()}),
    )
}

fn large(place: usize, bytes: usize) -> Value {
    json!({"metadata": {"name": format!("a{place}"), "managedFields": [{"fieldsV1": {"f:data": {}}}]},
        "data": {"text": "x".repeat(bytes)}})
}

#[tokio::test]
async fn lists_of_large_objects_are_read_whole() {
    for (count, bytes) in [(500, 30_000), (12, 1 << 20), (3_000, 100)] {
        let server = Server::start(move |target| {
            kinds(target).unwrap_or_else(|| page(target, count, |it| large(it, bytes)))
        })
        .await;
        let cluster = fake::cluster_in(&server, &Budget::default()).await;
        let mut lists = cluster.lists();
        let all = lists.all("v1", "ConfigMap", &["/metadata/name"]).await.expect("they are read");
        assert_eq!(all.len(), count);
        assert_eq!(all[count - 1], json!({"metadata": {"name": format!("a{}", count - 1)}}));
    }
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let large = json!({"metadata": {"name": "a", "finalizers": vec!["x"; 100]}});
    for items in [vec![], vec![large; 200], vec![json!({"metadata": {"name": "a"}}); 100_000]] {
        let endless = json!({"metadata": {"continue": "more"}, "items": items}).to_string();
        let server =
            Server::start(move |target| kinds(target).unwrap_or_else(|| Answer::Text(200, endless.clone())))
                .await;
        let cluster = fake::cluster_in(&server, &Budget::default()).await;
        let error =
            cluster.lists().all("v1", "Pod", &["/metadata"]).await.expect_err("it has no end").to_string();
        let known = [
            "its answer is larger than any should be",
            "it lists more objects of kind Pod than are looked at",
        ];
        assert!(known.iter().any(|it| error.ends_with(it)), "{error}");
        let sent = server.sent.load(Ordering::Relaxed);
        assert!(sent < 20 * LARGE.text, "{sent}");
    }
}

#[tokio::test]
async fn a_list_of_what_no_api_server_has_is_none() {
    let named = |name: &str, namespace: &str| json!({"metadata": {"name": name, "namespace": namespace}});
    for bad in [
        json!({}),
        named("../secrets/a", "b"),
        named("a", "\u{202e}b"),
        named("a b: all is well", "b"),
        json!({"metadata": {"name": 1}}),
    ] {
        let list = json!({"metadata": {}, "items": [named("a", "b"), bad]}).to_string();
        let server =
            Server::start(move |target| kinds(target).unwrap_or_else(|| Answer::Text(200, list.clone())))
                .await;
        let error = fake::cluster(&server)
            .await
            .lists()
            .all("v1", "Pod", &["/metadata"])
            .await
            .expect_err("it is refused")
            .to_string();
        assert_eq!(error, "the API server cannot be reached: it lists a Pod whose name no object can have");
    }
}

#[tokio::test]
async fn what_one_cluster_answers_holds_up_no_other() {
    let budget = Budget::with(Duration::from_secs(5));
    let list = page("?", 100, |it| large(it, 10_000));
    let Answer::Text(_, list) = list else { panic!("it is a text") };
    let honest =
        Server::start(move |target| kinds(target).unwrap_or_else(|| Answer::Text(200, list.clone()))).await;
    let mut clusters = Vec::new();
    for _ in 0..19 {
        clusters.push(fake::cluster_in(&honest, &budget).await);
    }
    let read_all = async || {
        let began = Instant::now();
        let lists = clusters.iter().map(async |cluster| {
            cluster.lists().all("v1", "ConfigMap", &["/metadata/name"]).await.map(|it| it.len())
        });
        for found in futures::future::join_all(lists).await {
            assert_eq!(found.expect("they are read"), 100);
        }
        began.elapsed()
    };
    let _first = read_all().await;
    let alone = read_all().await;
    // More than a small answer has, and then a byte now and then.
    let slow =
        || Answer::chunks(&format!("{{\"a\": \"{}", "x".repeat(1 << 20)), "x", Duration::from_millis(50));
    let hostile = Server::start(move |target| kinds(target).unwrap_or_else(slow)).await;
    let asking = Arc::new(fake::cluster_in(&hostile, &budget).await);
    let hostile: Vec<_> = (0..64)
        .map(|_| asking.clone())
        .map(|it| tokio::spawn(async move { it.get(&config_map()).await.is_err() }))
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let beside = read_all().await;
    assert!(hostile.iter().any(|it| !it.is_finished()), "it holds what it can");
    // One of three places for large answers is taken.
    assert!(
        beside < alone * 2 + Duration::from_millis(500),
        "{alone:?} alone, {beside:?} beside the hostile one"
    );
    hostile.into_iter().for_each(|it| it.abort());
}

#[tokio::test]
async fn a_version_that_is_none_is_no_answer() {
    for (answer, expected) in
        [(json!({"gitVersion": "v1.36.3"}), true), (json!({"gitVersion": [1]}), false), (json!([]), false)]
    {
        let server = Server::start(move |_| Answer::json(&answer)).await;
        assert_eq!(fake::cluster(&server).await.answers().await.is_ok(), expected);
    }
}
