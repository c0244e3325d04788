//! How long AWS may not show what was done: it is eventually consistent, and bounds nothing itself. Whoever
//! concludes something from what is not there, and whoever keeps what was written over what is read, counts
//! with the same bounds.

/// Seconds after which a read shows everything that was written before.
pub const READ_LAG: f64 = 30.0;
/// Seconds after which a read shows a resource for the first time: EC2 says that it may take minutes. What
/// this process made is remembered for so long, which leaves what an earlier one made.
pub const FIRST_SEEN: f64 = 300.0;
