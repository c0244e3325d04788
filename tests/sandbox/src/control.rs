//! How processes outside ask a world for something: one JSON line in, one JSON line out, over a Unix socket
//! in the world's directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;

use crate::operator::Operator;
use crate::world::process::{Report, Supervisor};

const SOCKET: &str = "control.sock";

/// What can be asked.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum Request {
    /// The long-running processes.
    Processes,
    /// Start the operator.
    OperatorStart,
    /// End the operator with SIGTERM and wait until it has ended.
    OperatorStop,
    /// End the operator with SIGKILL.
    OperatorKill,
}

/// What is answered.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Answer {
    pub error: Option<String>,
    pub processes: BTreeMap<String, Report>,
}

/// Serves requests until the world ends.
pub fn serve(directory: &Path, supervisor: Supervisor, operator: Operator) -> Result<()> {
    let socket = directory.join(SOCKET);
    let listener =
        UnixListener::bind(&socket).with_context(|| format!("listening on {}", socket.display()))?;
    let operator = Arc::new(Mutex::new(operator));
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (supervisor, operator) = (supervisor.clone(), Arc::clone(&operator));
                    tokio::spawn(async move {
                        if let Err(error) = converse(stream, &supervisor, &operator).await {
                            tracing::warn!("control: {error:#}");
                        }
                    });
                }
                Err(error) => tracing::warn!(%error, "a control connection was not accepted"),
            }
        }
    });
    Ok(())
}

/// Asks the world in `directory`.
///
/// # Errors
/// With the world's own reason when it could not do what was asked.
pub async fn ask(directory: &Path, request: Request) -> Result<Answer> {
    let socket = directory.join(SOCKET);
    let mut stream =
        UnixStream::connect(&socket).await.with_context(|| format!("connecting to {}", socket.display()))?;
    write_line(&mut stream, &request).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.context("reading the sandbox's answer")?;
    let answer: Answer = serde_json::from_str(&line).context("reading the sandbox's answer")?;
    match answer.error {
        Some(error) => bail!("{error}"),
        None => Ok(answer),
    }
}

async fn converse(mut stream: UnixStream, supervisor: &Supervisor, operator: &Mutex<Operator>) -> Result<()> {
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).await.context("reading a request")?;
    let request = serde_json::from_str(&line).context("reading a request")?;
    let result = act(request, operator).await;
    let error = result.err().map(|error| format!("{error:#}"));
    write_line(&mut stream, &Answer { error, processes: supervisor.reports() }).await
}

async fn act(request: Request, operator: &Mutex<Operator>) -> Result<()> {
    let mut operator = operator.lock().await;
    match request {
        Request::Processes => Ok(()),
        Request::OperatorStart => operator.start().await,
        Request::OperatorStop => operator.stop(true).await,
        Request::OperatorKill => operator.stop(false).await,
    }
}

async fn write_line<T: Serialize>(stream: &mut UnixStream, value: &T) -> Result<()> {
    let mut line = serde_json::to_vec(value).context("encoding a message")?;
    line.push(b'\n');
    stream.write_all(&line).await.context("writing a message")
}
