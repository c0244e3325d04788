//! Registries of a test's own, ended with the test: the one with the API of referrers, Debian's without, and ones that
//! answer whatever a test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use registry::{Limits, Repository, Source};
use tools::Tools;

static TOOLS: LazyLock<Tools> = LazyLock::new(|| Tools::ensure().expect("the tools can be made"));

/// A directory that goes with the test.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("registry-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A registry that runs.
pub struct Registry {
    process: Child,
    pub address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    /// One with the API of referrers; empty.
    pub fn with_referrers() -> Self {
        let mut process =
            Command::new(&TOOLS.registry).stdout(Stdio::piped()).spawn().expect("the registry starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        Self { process, address: line.trim().to_owned() }
    }

    /// Debian's, without; `more` goes into the sections `http` and below of its configuration.
    pub fn debian(storage: &Directory, more: &str) -> Self {
        let root = storage.path().join("storage");
        let text = format!(
            "version: 0.1\n\
             log: {{level: info, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http:\n  addr: 127.0.0.1:0\n  secret: test\n{more}",
            root.display()
        );
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("config-{}.yml", NUMBER.fetch_add(1, Ordering::Relaxed));
        let config = storage.write(&name, &text);
        let mut process = Command::new(&TOOLS.docker_registry)
            .arg("serve")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the registry starts");
        let mut lines = BufReader::new(process.stderr.take().expect("its log")).lines().map_while(Result::ok);
        let mut log = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let address = line.split_once("listening on ").map(|(_, rest)| {
                rest.chars().take_while(|it| it.is_ascii_digit() || ".:".contains(*it)).collect::<String>()
            });
            log.push(line);
            address
        });
        let address = address.unwrap_or_else(|| panic!("it does not listen: {log:#?}"));
        // It must not wait for somebody to read its log.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// A source in it, over plain HTTP.
    pub fn source(&self, path: &str) -> Source {
        Source { repository: format!("{}/{path}", self.address), plain_http: true, ..Source::default() }
    }

    pub fn repository(&self, path: &str) -> Repository {
        open(&self.source(path))
    }
}

/// A repository within the usual limits.
pub fn open(source: &Source) -> Repository {
    Repository::open(source, Limits::default()).expect("a source that can be used")
}

/// What a test's own server was asked: the path, and the `Authorization` that came with it.
pub type Asked = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A server that answers what a test wants, one request a connection.
pub struct Canned {
    pub address: String,
    pub asked: Asked,
}

impl Canned {
    /// Answers each path with raw bytes of HTTP, and then leaves the connection open when they are unfinished.
    pub fn start(answer: impl Fn(&str, Option<&str>) -> String + Send + Sync + 'static) -> Self {
        Self::serve(move |path, authorization, stream| {
            let _ = stream.write_all(answer(path, authorization).as_bytes());
        })
    }

    /// The same, with the connection in the hands of the test.
    pub fn serve(serve: impl Fn(&str, Option<&str>, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Asked::default();
        let (serve, said) = (Arc::new(serve), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (serve, said) = (serve.clone(), said.clone());
                std::thread::spawn(move || answer(stream, &*serve, &said));
            }
        });
        Self { address, asked }
    }

    pub fn source(&self) -> Source {
        let repository = format!("{}/plugins/tiny", self.address);
        Source { repository, plain_http: true, ..Source::default() }
    }

    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").iter().map(|(path, _)| path.clone()).collect()
    }
}

fn answer(mut stream: TcpStream, serve: &dyn Fn(&str, Option<&str>, &mut TcpStream), asked: &Asked) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut authorization = None;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) <= 2 {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            authorization = Some(value.trim().to_owned());
        }
    }
    asked.lock().expect("no panic").push((path.clone(), authorization.clone()));
    serve(&path, authorization.as_deref(), &mut stream);
    // Until the client has enough of it.
    let _ = reader.read_to_end(&mut Vec::new());
}

/// An answer of HTTP, after which the connection ends.
pub fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}
