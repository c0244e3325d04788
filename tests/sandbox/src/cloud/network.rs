//! Network namespaces: how they are made, and how this process opens sockets inside one of them.
//!
//! Nothing is routed between namespaces. Whatever crosses from one into another is copied by a task of this
//! process, which is what lets two VPCs use the same addresses.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::process::Command;

/// A network namespace: a named one, or the one this process lives in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(Option<String>);

impl Namespace {
    /// The namespace of the world itself, in which the management plane runs.
    pub const WORLD: Self = Self(None);

    /// Makes the namespace `name`, with its loopback device up.
    ///
    /// # Errors
    /// When it exists already or may not be made.
    pub async fn create(name: &str) -> Result<Self> {
        run(Command::new("ip").args(["netns", "add", name]), "").await?;
        let namespace = Self(Some(name.to_owned()));
        namespace.ip("link set lo up\n").await?;
        Ok(namespace)
    }

    /// The namespace `name`, which [`Self::create`] made.
    pub fn named(name: &str) -> Self {
        Self(Some(name.to_owned()))
    }

    /// Removes the name; the namespace goes when the last process in it has ended.
    pub async fn delete(&self) -> Result<()> {
        match &self.0 {
            Some(name) => run(Command::new("ip").args(["netns", "delete", name]), "").await,
            None => Ok(()),
        }
    }

    /// Runs a batch of `ip` commands, one a line, inside the namespace.
    pub async fn ip(&self, batch: &str) -> Result<()> {
        let mut command = Command::new("ip");
        if let Some(name) = &self.0 {
            command.args(["-n", name]);
        }
        run(command.args(["-batch", "-"]), batch).await
    }

    /// Loads an nftables script inside the namespace, as one transaction.
    pub async fn nft(&self, script: &str) -> Result<()> {
        let mut command = Command::new("nsenter");
        if let Some(path) = self.path() {
            command.arg(format!("--net={}", path.display()));
        }
        run(command.args(["nft", "-f", "-"]), script).await
    }

    /// File that stands for the namespace; none for the world's own.
    pub fn path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|name| PathBuf::from("/run/netns").join(name))
    }

    /// Listens on an address of the namespace.
    pub async fn listen(&self, address: SocketAddr) -> Result<TcpListener> {
        let open = move || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener =
            self.within(open).await.with_context(|| format!("listening on {address} in {self:?}"))?;
        TcpListener::from_std(listener).with_context(|| format!("polling the listener on {address}"))
    }

    /// Connects from inside the namespace, from the address `source` if there is one.
    pub async fn connect(&self, source: Option<SocketAddr>, target: SocketAddr) -> io::Result<TcpStream> {
        let open = move || {
            let socket = TcpSocket::new_v4()?;
            if let Some(source) = source {
                socket.bind(source)?;
            }
            Ok(socket)
        };
        self.within(open).await?.connect(target).await
    }

    /// Does `open` on a thread that is inside the namespace. Sockets stay in the namespace they were made in,
    /// and the thread ends here, so no other task ever runs in the wrong one.
    async fn within<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let Some(path) = self.path() else {
            return open();
        };
        let (reply, result) = tokio::sync::oneshot::channel();
        let enter_and_open = move || {
            let namespace = File::open(path)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            open()
        };
        std::thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            // The receiver is gone only when its task was cancelled.
            let _ = reply.send(enter_and_open());
        })?;
        result.await.map_err(|_| io::Error::other("the thread in the namespace ended early"))?
    }
}

/// Runs a short program with `input` on its standard input.
///
/// # Errors
/// With what the program wrote, when it fails.
async fn run(command: &mut Command, input: &str) -> Result<()> {
    let name = format!("{:?}", command.as_std());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {name}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).await.with_context(|| format!("writing to {name}"))?;
    }
    let output = child.wait_with_output().await.with_context(|| format!("waiting for {name}"))?;
    if !output.status.success() {
        bail!("{name} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Copies bytes both ways until either side closes.
pub async fn splice(mut one: TcpStream, mut other: TcpStream) {
    // Small packets of TLS must not wait for one another.
    let _ = (one.set_nodelay(true), other.set_nodelay(true));
    // An error is how most connections end: by reset, or by the machine that was terminated.
    let _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
}
