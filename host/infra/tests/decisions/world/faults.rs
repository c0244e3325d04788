//! What goes wrong in the pretend AWS, and between it and the operator.

use model::Read;

/// What goes wrong, each with a probability in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub throttled: u32,
    /// Nobody knows how it ended, and nothing was done.
    pub lost_request: u32,
    /// Nobody knows how it ended, and it was done.
    pub lost_reply: u32,
    /// The operator dies in the middle of carrying out a plan.
    pub crash: u32,
    /// NAT gateways that fail to start.
    pub failed_start: u32,
    /// Rounds by which reads are behind.
    pub lag: usize,
    /// Each kind's read is behind by another number of rounds every time, up to as many.
    pub swing: bool,
}

/// How one kind of read goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// It fails: what an earlier one showed is shown.
    Fails,
    /// It is behind by as many rounds.
    IsBehind(usize),
}

/// One thing that goes wrong, and what follows it: the answer to a write is lost, though it was carried out;
/// then its repetitions get lost on the way, and one kind of read goes wrong.
#[derive(Clone, Debug)]
pub struct Mishap {
    /// `create  vpc/`: how a write begins that it may happen to.
    pub write: String,
    pub read: Read,
    pub hindrance: Hindrance,
    /// For as many rounds.
    pub rounds: u32,
    /// The operator dies at once and starts again.
    pub kills: bool,
    /// Rounds that are left of it, once it happened.
    pub left: Option<u32>,
}

impl Mishap {
    pub(super) fn lasts(&self) -> bool {
        self.left.is_some_and(|it| it > 0)
    }
}
