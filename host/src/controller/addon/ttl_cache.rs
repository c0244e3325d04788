//! A cache whose values expire: good ones after long; what is wrong or not known is read again soon at first,
//! and less and less often.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a good value is cached. Whoever changes a role waits no longer than this for a report.
pub const GOOD: Duration = Duration::from_secs(30 * 60);
/// How soon what is wrong or not known is read again: soon at first, because a role or an issuer may
/// just have been made.
const FIRST: Duration = Duration::from_secs(5);
/// How soon at last.
const LAST: Duration = Duration::from_secs(300);

/// Values by their keys.
pub struct TtlCache<T> {
    /// How long a good value is cached.
    ttl: Duration,
    entries: Mutex<HashMap<String, Entry<T>>>,
}

struct Entry<T> {
    value: T,
    until: Instant,
    ttl: Duration,
}

impl<T> Default for TtlCache<T> {
    fn default() -> Self {
        Self::with_ttl(GOOD)
    }
}

impl<T> TtlCache<T> {
    /// Good values are cached for so long.
    pub fn with_ttl(ttl: Duration) -> Self {
        Self { ttl, entries: Mutex::default() }
    }
}

impl<T: Clone> TtlCache<T> {
    /// The value that is cached, or else what `read` gives, and when it is read again.
    pub async fn get_or_read(
        &self,
        key: String,
        is_good: impl Fn(&T) -> bool,
        read: impl Future<Output = T>,
    ) -> (T, Instant) {
        let previous = match self.lock().get(&key) {
            Some(entry) if entry.until > Instant::now() => return (entry.value.clone(), entry.until),
            entry => entry.filter(|it| !is_good(&it.value)).map(|it| it.ttl),
        };
        let value = read.await;
        let ttl = if is_good(&value) { self.ttl } else { backoff(previous) };
        let until = Instant::now() + ttl;
        let mut entries = self.lock();
        // Keys that nobody asks for any more.
        entries.retain(|_, entry| entry.until + GOOD > Instant::now());
        entries.insert(key, Entry { value: value.clone(), until, ttl });
        (value, until)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How soon what is not good is read again; `previous`: how long the value before was cached, if that was not
/// good either.
fn backoff(previous: Option<Duration>) -> Duration {
    previous.map_or(FIRST, |previous| (previous * 2).min(LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_asked_again_less_and_less_often() {
        let mut waits = vec![backoff(None)];
        while waits.last() != Some(&LAST) {
            waits.push(backoff(waits.last().copied()));
        }
        assert_eq!(waits.iter().map(Duration::as_secs).collect::<Vec<_>>(), [5, 10, 20, 40, 80, 160, 300]);
    }

    #[tokio::test]
    async fn a_key_is_read_once_and_another_is_another() {
        let cache = TtlCache::default();
        let read = async |key: &str, value: u32| {
            cache.get_or_read(key.to_owned(), |_| true, async { value }).await.0
        };
        assert_eq!((read("one", 1).await, read("one", 2).await, read("two", 3).await), (1, 1, 3));
    }
}
