//! Has components from outside compiled in a child process, one at a time, and says what became of it. The
//! host itself only moves bytes.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use crate::child::{FAILED, INVALID, OUT_OF_MEMORY, Orders};
use crate::error::PluginError;

/// Bytes of what the child says on its standard error that are read.
const LAST_WORDS: u64 = 4096;
/// What Rust's allocator says before it ends the process.
const ALLOCATION_FAILED: &str = "memory allocation of ";
/// Signals by their numbers on Linux, which are the same on all machines that this runs on.
const SIGABRT: i32 = 6;
const SIGXCPU: i32 = 24;

/// What the child has in its environment. Programs that allocate with mimalloc would reserve a gibibyte before
/// they limit themselves, and allocate in it afterwards as if there were no limit; others ignore it.
const ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_DISALLOW_ARENA_ALLOC", "1")];

/// What compiling one component may take.
#[derive(Clone, Copy, Debug)]
pub struct CompilerLimits {
    /// Bytes of memory beyond what the program takes when it starts.
    pub memory: u64,
    /// Time of computing, in whole seconds.
    pub computing: Duration,
    /// Time by the clock.
    pub time: Duration,
    /// Bytes of the compiled code.
    pub code: usize,
}

impl Default for CompilerLimits {
    fn default() -> Self {
        CompilerLimits {
            memory: 448 << 20,
            computing: Duration::from_secs(60),
            time: Duration::from_secs(300),
            code: 128 << 20,
        }
    }
}

/// A program that calls [`compile_in_child`](crate::compile_in_child), and what it may use. Cheap to clone;
/// all clones compile one component at a time.
#[derive(Clone, Debug)]
pub struct Compiler {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompilerLimits,
    turn: Arc<Semaphore>,
}

impl Compiler {
    /// A compiler that runs `program` with `arguments`.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
        limits: CompilerLimits,
    ) -> Compiler {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Compiler { program: program.into(), arguments, limits, turn: Arc::new(Semaphore::new(1)) }
    }

    /// The code of a component, as wasmtime stores it.
    ///
    /// # Errors
    /// What the component is not, which limit it exceeded, or how the child ended.
    pub(crate) async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, PluginError> {
        let _turn = self.turn.acquire().await.map_err(|error| host(&error))?;
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            // Credentials among others.
            .env_clear()
            .envs(ENVIRONMENT)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| host(&error))?;
        let talk = tokio::time::timeout(self.limits.time, self.talk(&mut child, component));
        let result = talk.await.unwrap_or(Err(PluginError::CompilerRanTooLong { limit: self.limits.time }));
        if result.is_err() {
            // Before the next one begins. It has usually ended already.
            let _ = child.kill().await;
        }
        result
    }

    async fn talk(&self, child: &mut Child, component: &[u8]) -> Result<Vec<u8>, PluginError> {
        let (Some(mut input), Some(output), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(PluginError::Host { detail: "the compiler has no pipes".to_owned() });
        };
        let CompilerLimits { memory, computing, code: most, .. } = self.limits;
        let orders = Orders { memory, computing, component: component.len() as u64 };
        let give = async {
            // A child that ended does not read; its status says why.
            if input.write_all(&orders.to_bytes()).await.is_ok() {
                let _ = input.write_all(component).await;
            }
            drop(input);
            Ok(())
        };
        let take = async {
            let mut code = Vec::new();
            let mut output = output.take(most as u64 + 1);
            output.read_to_end(&mut code).await.map_err(|error| host(&error))?;
            if code.len() > most { Err(PluginError::CodeTooLarge { limit: most }) } else { Ok(code) }
        };
        let listen = async {
            let mut words = Vec::new();
            (&mut errors).take(LAST_WORDS).read_to_end(&mut words).await.map_err(|error| host(&error))?;
            // The rest is read, so that the child does not wait for a reader.
            tokio::io::copy(&mut errors, &mut tokio::io::sink()).await.map_err(|error| host(&error))?;
            Ok(String::from_utf8_lossy(&words).into_owned())
        };
        let ((), code, words) = tokio::try_join!(give, take, listen)?;
        let status = child.wait().await.map_err(|error| host(&error))?;
        if status.success() { Ok(code) } else { Err(self.failure(status, words)) }
    }

    /// What became of a child that did not succeed.
    fn failure(&self, status: ExitStatus, words: String) -> PluginError {
        let CompilerLimits { memory, computing, .. } = self.limits;
        let is = |code: u8| status.code() == Some(i32::from(code));
        if is(INVALID) {
            PluginError::invalid_component(&words)
        } else if is(OUT_OF_MEMORY) || status.signal() == Some(SIGABRT) && words.contains(ALLOCATION_FAILED) {
            PluginError::CompilerOutOfMemory { limit: memory }
        } else if is(FAILED) {
            PluginError::Host { detail: format!("compiling: {words}") }
        } else if status.signal() == Some(SIGXCPU) {
            PluginError::CompilerRanTooLong { limit: computing }
        } else {
            PluginError::compiler_crashed(&status.to_string(), &words)
        }
    }
}

fn host(error: &dyn std::error::Error) -> PluginError {
    PluginError::Host { detail: format!("compiling: {error}") }
}
