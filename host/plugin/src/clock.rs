//! The time that plugins have. Fuel ends what computes too much, and each time at the same place; the clock
//! is there for what fuel does not count, such as text that is copied for the host, and leaves a call that
//! ends in time exactly as it is.

use std::io;
use std::thread;
use std::time::Duration;
use wasmtime::Engine;

/// Parts into which the time of a call is cut: by one of them at most it lasts longer.
const PARTS: u32 = 10;
/// Ticks of the clock after which a call is over. One more than there are parts, because the first may come
/// at once.
pub const TICKS: u64 = PARTS as u64 + 1;

/// Starts the clock of an engine, for calls that may take `time`. Its thread sleeps but for a moment in each
/// part of it, and ends when the engine is gone.
pub fn start(engine: &Engine, time: Duration) -> io::Result<()> {
    let (engine, part) = (engine.weak(), (time / PARTS).max(Duration::from_millis(1)));
    let tick = move || {
        while let Some(running) = engine.upgrade() {
            running.increment_epoch();
            drop(running);
            thread::sleep(part);
        }
    };
    thread::Builder::new().name("plugin-clock".to_owned()).spawn(tick).map(drop)
}
