//! What decisions are given from outside: the time, and random bits.

use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// Seconds since 1970.
pub fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|it| it.as_secs_f64()).unwrap_or_default()
}

/// 244 random bits: for ids and nonces.
pub fn random() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}
