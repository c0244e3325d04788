//! A server for tests that answers as it is told, whatever HTTP says: it speaks just enough of it, and counts
//! what it was asked and what it could send.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What it answers.
pub enum Answer {
    /// A status code and a JSON text.
    Text(u16, String),
    /// These bytes first, then these again and again, each time after a pause, for as long as somebody reads.
    Endless { first: String, again: Vec<u8>, pause: Duration },
}

impl Answer {
    pub fn json(value: &Value) -> Answer {
        Answer::Text(200, value.to_string())
    }

    /// An answer without an end in pieces of HTTP's chunked encoding.
    pub fn chunks(first: &str, again: &str, pause: Duration) -> Answer {
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        Answer::Endless { first: format!("{head}{}", chunk(first)), again: chunk(again).into_bytes(), pause }
    }
}

/// A server, for as long as the test runs.
pub struct Server {
    pub port: u16,
    /// Requests, as handlers get them.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Bytes that were sent.
    pub sent: Arc<AtomicUsize>,
}

impl Server {
    /// One on this machine that answers a method and path, such as `GET /version`.
    pub async fn start(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Server {
        Server::at("127.0.0.1:0", move |request| handler(request.lines().next().unwrap_or_default())).await
    }

    /// One at an address that answers requests: method and path in the first line, then headers in small
    /// letters.
    pub async fn at(address: &str, handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(address).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Server { port, asked: Arc::default(), sent: Arc::default() };
        let (asked, sent, handler) = (server.asked.clone(), server.sent.clone(), Arc::new(handler));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, handler.clone(), asked.clone(), sent.clone()));
            }
        });
        server
    }

    /// Methods and paths that were asked for.
    pub fn requests(&self) -> Vec<String> {
        let all = self.asked.lock().expect("no test panicked");
        all.iter()
            .filter_map(|it| it.lines().next())
            .map(|it| it.trim_end_matches(" http/1.1").to_owned())
            .collect()
    }
}

async fn serve(
    stream: TcpStream,
    handler: Arc<impl Fn(&str) -> Answer + ?Sized>,
    asked: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicUsize>,
) {
    // Head and body are written one after the other.
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(stream.read_line(&mut head).await, Ok(1..)) {
                return;
            }
        }
        let small = head.to_lowercase();
        let length = small
            .lines()
            .find_map(|it| it.strip_prefix("content-length: ")?.trim().parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        let first = head.lines().next().unwrap_or_default();
        let target = first.rsplit_once(' ').map_or(first, |it| it.0).to_owned();
        let rest = small.split_once('\n').map_or("", |it| it.1);
        let request = format!("{target}\n{rest}");
        asked.lock().expect("no test panicked").push(request.clone());
        match handler(&request) {
            Answer::Text(code, text) => {
                let head = format!(
                    "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    text.len()
                );
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
                for piece in text.as_bytes().chunks(64 << 10) {
                    if stream.write_all(piece).await.is_err() {
                        return;
                    }
                    sent.fetch_add(piece.len(), Ordering::Relaxed);
                }
            }
            Answer::Endless { first, again, pause } => {
                let mut next = first.as_bytes();
                while stream.write_all(next).await.is_ok() {
                    sent.fetch_add(next.len(), Ordering::Relaxed);
                    next = &again;
                    tokio::time::sleep(pause).await;
                }
                return;
            }
        }
    }
}
