//! Registries that stall, flood, lie and send us elsewhere: each is a typed error within its limit, and none learns a
//! password that is not for it.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use registry::{Digest, Limits, PullError, Repository, Source};

use crate::push::{COMPONENT, LAYOUTS, manifest};
use crate::servers::{Canned, open, reply};

const PASSWORD: &str = "Basic dXNlcjpodW50ZXIy"; // user:hunter2

fn digest() -> Digest {
    Digest::of(manifest(LAYOUTS[0], COMPONENT).as_bytes())
}

async fn pull(source: &Source, limits: Limits) -> PullError {
    let repository = Repository::open(source, limits).expect("a source");
    let error = repository.pull(&digest()).await.expect_err("it is hostile");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error
}

fn with_password(server: &Canned) -> Source {
    let config =
        format!(r#"{{"auths": {{"{}": {{"username": "user", "password": "hunter2"}}}}}}"#, server.address);
    Source { docker_config: Some(config.into_bytes()), ..server.source() }
}

#[tokio::test]
async fn who_stalls_is_given_up_and_tried_again_later() {
    let limits =
        Limits { read: Duration::from_millis(200), overall: Duration::from_millis(900), ..Limits::default() };
    let unfinished = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{";
    let silent = Canned::start(|_, _| String::new());
    let midway = Canned::start(move |_, _| unfinished.to_owned());
    let dripping = Canned::serve(move |_, _, stream| {
        let _ = stream.write_all(unfinished.as_bytes());
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    for (server, why) in [
        (silent, "nothing came for 0.2 seconds"),
        (midway, "nothing came for 0.2 seconds"),
        (dripping, "it took longer than 0.9 seconds"),
    ] {
        let started = Instant::now();
        let error = pull(&server.source(), limits).await;
        assert!(error.is_transient() && error.to_string().contains(why), "{error}");
        assert!(started.elapsed() < Duration::from_secs(3), "{why}");
    }
    let gone = Canned::start(|_, _| String::new()).source().repository.replace("127.0.0.1", "127.1.2.3");
    let error = pull(&Source { repository: gone, plain_http: true, ..Source::default() }, limits).await;
    assert!(error.is_transient() && error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn endless_answers_end_at_their_limit() {
    let limits = Limits { manifest: 100_000, ..Limits::default() };
    let written = Arc::new(Mutex::new(0_usize));
    let count = written.clone();
    let endless = Canned::serve(move |_, _, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 4096]).is_ok() {
            *count.lock().expect("no panic") += 4096;
        }
    });
    let error = pull(&endless.source(), limits).await;
    assert!(matches!(error, PullError::TooLarge { limit: 100_000, .. }), "{error:?}");
    let announced =
        Canned::start(|_, _| "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n".to_owned());
    let error = pull(&announced.source(), limits).await;
    assert!(matches!(error, PullError::TooLarge { .. }), "{error:?}");
    let refusal = Canned::serve(|_, _, stream| {
        let _ = stream.write_all(b"HTTP/1.1 500 No\r\n\r\n");
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    let error = pull(&refusal.source(), limits).await;
    assert!(error.is_transient(), "{error:?}");
    assert!(*written.lock().expect("no panic") < 20_000_000, "more was read than fits the sockets' buffers");
}

#[tokio::test]
async fn each_refusal_says_whether_it_is_worth_another_try() {
    for (status, is_transient, expected) in [
        ("403 Forbidden", false, "does not let everybody read"),
        ("404 Not Found", false, "has no manifests/sha256:"),
        ("418 Teapot", false, "HTTP status 418"),
        ("429 Too Many Requests", true, "HTTP status 429"),
        ("503 Unavailable", true, "HTTP status 503"),
    ] {
        let server = Canned::start(move |_, _| reply(status, "", "hunter2"));
        let error = pull(&server.source(), Limits::default()).await;
        assert_eq!(error.is_transient(), is_transient, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn nonsense_of_a_token_service_is_an_error_and_no_panic() {
    for (status, body, expected) in [
        ("200 OK", "hunter2", "other JSON, or none"),
        ("200 OK", "{}", "an answer without token"),
        ("200 OK", r#"{"token": ""}"#, "an answer without token"),
        ("200 OK", r#"{"token": "a\nhunter2"}"#, "characters that no header can have"),
        ("500 No", "hunter2", "no token but HTTP status 500"),
        ("302 Found", "hunter2", "what is no URL"),
    ] {
        let service = Canned::start(move |_, _| reply(status, "", body));
        let realm = format!("http://{}/token", service.address);
        let server = Canned::start(move |_, _| {
            reply("401 Unauthorized", &format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"), "")
        });
        let error = pull(&with_password(&server), Limits::default()).await;
        assert!(error.to_string().contains(expected), "{error}");
    }
    for challenge in
        ["", "WWW-Authenticate: Negotiate\r\n", "WWW-Authenticate: Bearer realm=\"nonsense\"\r\n"]
    {
        let server = Canned::start(move |_, _| reply("401 Unauthorized", challenge, ""));
        let error = pull(&server.source(), Limits::default()).await;
        assert!(matches!(error, PullError::Answer { .. }), "{error:?}");
    }
}

/// A registry that gives manifests to who has the password, and its blobs by another host.
fn redirecting(location: impl Fn(&str) -> String + Send + Sync + 'static) -> Canned {
    Canned::start(move |path, authorization| {
        if authorization != Some(PASSWORD) {
            return reply("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
        }
        match path.contains("/manifests/") {
            true => reply("200 OK", "", &manifest(LAYOUTS[0], COMPONENT)),
            false => reply("307 Temporary Redirect", &format!("Location: {}\r\n", location(path)), ""),
        }
    })
}

#[tokio::test]
async fn a_host_that_the_registry_sends_us_to_learns_no_password() {
    let component = String::from_utf8(COMPONENT.to_vec()).expect("it happens to be text");
    let storage = Canned::start(move |_, _| reply("200 OK", "", &component));
    let address = storage.address.clone();
    let server = redirecting(move |path| format!("http://other:hunter2@{address}{path}?signature=hunter2"));
    let pulled = open(&with_password(&server)).pull(&digest()).await.expect("it is redirected");
    assert_eq!(pulled.component, COMPONENT);
    let asked = storage.asked.lock().expect("no panic").clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1, None, "the password went along");
    assert!(
        server
            .asked
            .lock()
            .expect("no panic")
            .iter()
            .any(|(_, password)| password.as_deref() == Some(PASSWORD))
    );
}

#[tokio::test]
async fn redirects_lead_nowhere_that_is_not_meant() {
    let refusing =
        Canned::start(|_, _| reply("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "hunter2"));
    let address = refusing.address.clone();
    for (location, expected) in [
        ("/v2/again?signature=hunter2".to_owned(), "yet another place 5 times"),
        ("file:///etc/hunter2".to_owned(), "nowhere over \"file\""),
        ("http://[hunter2".to_owned(), "what is no URL"),
        (format!("http://{address}/?signature=hunter2"), "HTTP status 401"),
    ] {
        let server = redirecting(move |_| location.clone());
        let error = pull(&with_password(&server), Limits::default()).await;
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(refusing.asked.lock().expect("no panic").len(), 1, "it was given what it asked for");
}
