//! What an instance has while it lives: its limits, and a log of bounded size. It is dropped after every call.

use crate::bindings::kurator::cluster_plugin::{log, types};
use wasmtime::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};

/// Bytes of messages that one call may log; the rest is dropped.
const LOG_BYTES: usize = 64 << 10;
/// Bytes of the line that is shown to users when a plugin traps.
const LAST_WORDS_BYTES: usize = 1024;

/// The state of one instance.
pub struct Guest {
    limits: StoreLimits,
    plugin: String,
    logged: usize,
    /// The last line of level `error`.
    pub last_error: Option<String>,
    /// Whether it was refused memory.
    pub out_of_memory: bool,
}

impl Guest {
    pub fn new(plugin: &str, memory: usize) -> Guest {
        let limits = StoreLimitsBuilder::new()
            .memory_size(memory)
            .table_elements(100_000)
            .instances(64)
            .tables(64)
            .memories(16)
            .trap_on_grow_failure(true)
            .build();
        Guest { limits, plugin: plugin.to_owned(), logged: 0, last_error: None, out_of_memory: false }
    }
}

/// As the limits say, but remembers a refusal, which wasmtime only tells in words.
impl ResourceLimiter for Guest {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let answer = self.limits.memory_growing(current, desired, maximum);
        self.out_of_memory |= answer.is_err();
        answer
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.out_of_memory = true;
        self.limits.memory_grow_failed(error)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let answer = self.limits.table_growing(current, desired, maximum);
        self.out_of_memory |= answer.is_err();
        answer
    }

    fn instances(&self) -> usize {
        self.limits.instances()
    }

    fn tables(&self) -> usize {
        self.limits.tables()
    }

    fn memories(&self) -> usize {
        self.limits.memories()
    }
}

impl types::Host for Guest {}

impl log::Host for Guest {
    fn write(&mut self, level: log::Level, message: String) {
        let room = LOG_BYTES.saturating_sub(self.logged);
        if room == 0 {
            return;
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
                self.last_error = Some(shortened(message, LAST_WORDS_BYTES).to_owned());
            }
        }
    }
}

/// The first `bytes` bytes of a text, or a little less where a character would be cut.
fn shortened(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Host;

    #[test]
    fn the_log_of_a_call_is_bounded() {
        let mut guest = Guest::new("test", 0);
        for _ in 0..100 {
            guest.write(log::Level::Debug, "x".repeat(1000));
        }
        assert_eq!(guest.logged, LOG_BYTES);
    }

    #[test]
    fn a_flood_of_empty_lines_ends_too() {
        let mut guest = Guest::new("test", 0);
        (0..LOG_BYTES + 1).for_each(|_| guest.write(log::Level::Debug, String::new()));
        guest.write(log::Level::Error, "too late".to_owned());
        assert_eq!(guest.last_error, None);
    }

    #[test]
    fn the_last_error_is_kept_without_cutting_a_character() {
        let mut guest = Guest::new("test", 0);
        guest.write(log::Level::Error, "é".repeat(1000));
        guest.write(log::Level::Info, "afterwards".to_owned());
        assert_eq!(guest.last_error.map(|line| line.len()), Some(LAST_WORDS_BYTES));
    }
}
