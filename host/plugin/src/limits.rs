//! What a plugin may use: fuel, time, memory and sizes.

use std::time::Duration;

/// Calls at the same time, however many processors there are: each may take all its memory, and the answer as
/// much again while it is read.
const MOST_CALLS: usize = 2;

/// What one call may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Fuel of `plan`; `describe` and `validate` get a tenth. 10^10 is about a second.
    pub fuel: u64,
    /// Time by the clock, in case fuel does not tell. Far more than any plugin needs, so that no answer
    /// depends on how busy the machine is.
    pub time: Duration,
    /// Bytes of all memories and tables together.
    pub memory: usize,
    /// Bytes of an answer.
    pub answer: usize,
    /// Bytes of a component.
    pub component: usize,
    /// Calls at the same time.
    pub calls: usize,
}

impl Limits {
    /// The lower of each limit of a call; the others are of the host.
    #[must_use]
    pub fn lower(self, other: Limits) -> Limits {
        Limits {
            fuel: self.fuel.min(other.fuel),
            memory: self.memory.min(other.memory),
            answer: self.answer.min(other.answer),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let calls = processors.min(MOST_CALLS);
        let time = Duration::from_secs(30);
        Limits { fuel: 10_000_000_000, time, memory: 128 << 20, answer: 8 << 20, component: 32 << 20, calls }
    }
}
