//! What an instance has while it lives: its limits, and a log of bounded size. It is dropped after every
//! call.

use crate::bindings::kurator::cluster_plugin::{log, types};
use crate::text::shown;
use wasmtime::ResourceLimiter;

/// Bytes of messages that one call may log; the rest is dropped.
const LOG_BYTES: usize = 64 << 10;
/// Messages that one call may hand over, those that are dropped among them: each was copied before, and fuel
/// does not count that.
pub const MOST_MESSAGES: usize = 10_000;
/// Bytes of all those messages together.
pub const MOST_BYTES: usize = 16 << 20;
/// Bytes of the line that is shown to users when a plugin traps.
const LAST_WORDS_BYTES: usize = 1024;
/// Bytes of an element of a table.
const ELEMENT_BYTES: usize = size_of::<usize>();

/// What ended a call, where wasmtime would only tell in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More memory than there may be.
    Memory,
    /// More messages than there may be.
    Log,
}

/// The state of one instance.
pub struct Guest {
    plugin: String,
    /// Bytes that all memories and tables may take together, and what they do take.
    memory: usize,
    taken: usize,
    /// Messages that were handed over, their bytes, and how many of those were logged.
    messages: usize,
    bytes: usize,
    logged: usize,
    /// The last line of level `error`.
    pub last_error: Option<String>,
    /// What it was refused.
    pub refusal: Option<Refusal>,
}

impl Guest {
    pub fn new(plugin: &str, memory: usize) -> Guest {
        let plugin = plugin.to_owned();
        Guest { plugin, memory, taken: 0, messages: 0, bytes: 0, logged: 0, last_error: None, refusal: None }
    }

    /// Lets one memory or table grow to `desired` bytes if all of them together have room for that.
    fn grow(&mut self, current: usize, desired: usize, is_possible: bool) -> wasmtime::Result<bool> {
        let taken = self.taken.saturating_sub(current).saturating_add(desired);
        if taken > self.memory || !is_possible {
            return Err(self.refuse(Refusal::Memory));
        }
        self.taken = taken;
        Ok(true)
    }

    /// An error that ends the call.
    fn refuse(&mut self, refusal: Refusal) -> wasmtime::Error {
        self.refusal = Some(refusal);
        wasmtime::Error::msg("the limits of a call do not allow it")
    }
}

/// One budget of bytes for whatever grows, because limits of each memory would add up. Who asks for too much
/// is ended rather than told, and the refusal is remembered.
impl ResourceLimiter for Guest {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(current, desired, maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refusal = Some(Refusal::Memory);
        Err(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let bytes = |elements: usize| elements.saturating_mul(ELEMENT_BYTES);
        self.grow(bytes(current), bytes(desired), maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        16
    }
}

impl types::Host for Guest {}

impl log::Host for Guest {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.messages += 1;
        self.bytes += message.len();
        if self.messages > MOST_MESSAGES || self.bytes > MOST_BYTES {
            return Err(self.refuse(Refusal::Log));
        }
        let room = LOG_BYTES.saturating_sub(self.logged);
        if room == 0 {
            return Ok(());
        }
        let message = shortened(&message, room);
        self.logged += message.len().max(1);
        let plugin = &self.plugin;
        match level {
            log::Level::Debug => tracing::debug!(plugin, "{message}"),
            log::Level::Info => tracing::info!(plugin, "{message}"),
            log::Level::Warn => tracing::warn!(plugin, "{message}"),
            log::Level::Error => {
                tracing::error!(plugin, "{message}");
                self.last_error = Some(shown(message, LAST_WORDS_BYTES));
            }
        }
        Ok(())
    }
}

/// The first `bytes` bytes of a text, or a little less where a character would be cut.
fn shortened(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::{Host, Level};

    fn write(guest: &mut Guest, level: Level, message: &str) {
        guest.write(level, message.to_owned()).expect("it is not too much");
    }

    #[test]
    fn the_log_of_a_call_is_bounded() {
        let mut guest = Guest::new("test", 0);
        for _ in 0..100 {
            write(&mut guest, Level::Debug, &"x".repeat(1000));
        }
        assert_eq!(guest.logged, LOG_BYTES);
    }

    #[test]
    fn a_flood_of_empty_lines_ends_the_call() {
        let mut guest = Guest::new("test", 0);
        (0..MOST_MESSAGES).for_each(|_| write(&mut guest, Level::Debug, ""));
        assert!(guest.write(Level::Error, "too late".to_owned()).is_err());
        assert_eq!(guest.refusal, Some(Refusal::Log));
        assert_eq!(guest.last_error, None);
    }

    #[test]
    fn what_is_dropped_counts_for_the_end_of_the_call() {
        let mut guest = Guest::new("test", 0);
        let message = "x".repeat(MOST_BYTES / 2);
        (0..2).for_each(|_| write(&mut guest, Level::Debug, &message));
        assert_eq!((guest.logged, guest.refusal), (LOG_BYTES, None));
        assert!(guest.write(Level::Debug, "x".to_owned()).is_err());
        assert_eq!(guest.refusal, Some(Refusal::Log));
    }

    #[test]
    fn the_last_error_is_kept_without_cutting_a_character() {
        let mut guest = Guest::new("test", 0);
        write(&mut guest, Level::Error, &"é".repeat(1000));
        write(&mut guest, Level::Info, "afterwards");
        let line = guest.last_error.unwrap_or_default();
        assert!(line.len() <= LAST_WORDS_BYTES && line.ends_with("é..."), "{line}");
    }

    #[test]
    fn all_memories_and_tables_share_one_limit() {
        let mut guest = Guest::new("test", 1000);
        let answers = [
            guest.memory_growing(0, 600, None),
            guest.memory_growing(600, 700, None),
            guest.table_growing(0, 300 / ELEMENT_BYTES, None),
        ];
        assert!(answers.into_iter().all(|answer| answer.is_ok_and(|may| may)));
        assert_eq!(guest.refusal, None);
        assert!(guest.memory_growing(0, 100, None).is_err());
        assert_eq!(guest.refusal, Some(Refusal::Memory));
    }
}
