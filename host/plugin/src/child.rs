//! The child process in which components from outside are compiled, and what it and the host say to one
//! another. A compiler that is fed by strangers may take any time and memory, and may crash; here it takes
//! what it was given, and nobody else goes down with it.
//!
//! The child gets its orders and the component by its standard input, and answers with the compiled code on
//! its standard output, or with an exit code and a line on its standard error.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Resource, Rlimit, nice, set_dumpable_behavior, setrlimit};
use rustix::thread::set_no_new_privs;

use crate::settings::strict;

/// The component is none.
pub const INVALID: u8 = 10;
/// The memory was not enough.
pub const OUT_OF_MEMORY: u8 = 11;
/// The child could not do its work.
pub const FAILED: u8 = 12;

/// How much less the child matters than the host when both want to compute.
const NICENESS: i32 = 10;
/// Seconds of computing after which the child is killed if the signal before did not end it.
const GRACE: u64 = 2;

/// What the child may use, and the size of the component that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Bytes of memory beyond what the program takes when it starts.
    pub memory: u64,
    /// Time of computing, in whole seconds.
    pub computing: Duration,
    /// Bytes of the component.
    pub component: u64,
}

impl Orders {
    pub fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (place, number) in
            bytes.chunks_exact_mut(8).zip([self.memory, self.computing.as_secs(), self.component])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn read(from: &mut impl Read) -> io::Result<Orders> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        Ok(Orders { memory: number()?, computing: Duration::from_secs(number()?), component: number()? })
    }
}

/// All that the child process does: it limits itself, reads a component, compiles it, writes the code. A
/// program that compiles for an [`Engine`](crate::Engine) calls this first of all and ends with its result.
pub fn compile_in_child() -> ExitCode {
    let (code, message) = match compile() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Invalid(error)) if is_out_of_memory(&error) => (OUT_OF_MEMORY, error.to_string()),
        Err(Failure::Invalid(error)) => (INVALID, format!("{error:#}")),
        Err(Failure::Io(error)) => (FAILED, error.to_string()),
    };
    // Who reads it may have gone.
    let _ = io::stderr().write_all(message.as_bytes());
    ExitCode::from(code)
}

enum Failure {
    Invalid(wasmtime::Error),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

fn compile() -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let orders = Orders::read(&mut input)?;
    confine(orders)?;
    let mut component = Vec::with_capacity(usize::try_from(orders.component).map_err(io::Error::other)?);
    input.take(orders.component).read_to_end(&mut component)?;
    let mut config = strict();
    // Each thread would have functions of its own in work, and memory for them.
    config.parallel_compilation(false);
    let engine = wasmtime::Engine::new(&config)
        .map_err(|error| Failure::Io(io::Error::other(format!("{error:#}"))))?;
    let code = engine.precompile_component(&component).map_err(Failure::Invalid)?;
    io::stdout().write_all(&code)?;
    Ok(())
}

/// Takes from this process what it does not need. From here on it can be given untrusted input.
fn confine(orders: Orders) -> io::Result<()> {
    let limit = |resource: Resource, soft: u64, hard: u64| {
        setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })
    };
    let (all, data) = address_space()?;
    if data > orders.memory / 4 {
        let message =
            format!("{data} bytes were reserved before there was a limit, which it cannot take back");
        return Err(io::Error::other(message));
    }
    let memory = all.saturating_add(orders.memory);
    limit(Resource::As, memory, memory)?;
    let seconds = orders.computing.as_secs();
    limit(Resource::Cpu, seconds, seconds.saturating_add(GRACE))?;
    limit(Resource::Core, 0, 0)?;
    // A core dump that is piped to a program has no limit; this one never begins.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_no_new_privs(true)?;
    // It matters to nobody when the machine does not allow it.
    let _ = nice(NICENESS);
    Ok(())
}

/// Bytes of address space that this process has, and how much of it is for data.
fn address_space() -> io::Result<(u64, u64)> {
    let sizes = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Vec<u64> = sizes.split_whitespace().filter_map(|pages| pages.parse().ok()).collect();
    let page = rustix::param::page_size() as u64;
    match pages.as_slice() {
        [all, _resident, _shared, _text, _library, data, ..] => Ok((all * page, data * page)),
        _ => Err(io::Error::other(format!("/proc/self/statm is {sizes:?}"))),
    }
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.is::<wasmtime::error::OutOfMemory>()
        || error.chain().any(|cause| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let orders = Orders { memory: 1 << 40, computing: Duration::from_secs(7), component: 3 };
        assert_eq!(Orders::read(&mut &orders.to_bytes()[..]).ok(), Some(orders));
        assert!(Orders::read(&mut &orders.to_bytes()[..23]).is_err());
    }
}
