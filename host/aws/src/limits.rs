//! How fast calls may go out: a token bucket for each class of action, shared by all regions, so that one
//! account is not throttled for what this program does. A call waits for its turn; none is dropped.

use std::time::Duration;

use model::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::now;

/// Token buckets of one account. The figures are those CAPA uses for each of its controllers.
pub(crate) struct Limits {
    pub reads: Bucket,
    /// RunInstances.
    pub launches: Bucket,
    /// All other writes.
    pub writes: Bucket,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            reads: Bucket::new(20.0, 100.0),
            launches: Bucket::new(2.0, 5.0),
            writes: Bucket::new(5.0, 100.0),
        }
    }
}

pub(crate) struct Bucket {
    tokens: Mutex<Tokens>,
}

struct Tokens {
    /// Per second.
    rate: f64,
    burst: f64,
    left: f64,
    counted: Instant,
}

impl Bucket {
    fn new(rate: f64, burst: f64) -> Self {
        Bucket { tokens: Mutex::new(Tokens { rate, burst, left: burst, counted: Instant::now() }) }
    }

    /// Waits for a turn; in order of arrival, because the lock is held meanwhile and is fair.
    pub async fn take(&self) {
        self.take_until(None).await;
    }

    /// The same, for what may not wait for longer than until then. False when it would have to; then it takes
    /// nobody else's turn.
    pub async fn take_until(&self, until: Option<Timestamp>) -> bool {
        let mut tokens = self.tokens.lock().await;
        let wait = tokens.wait(Instant::now());
        if until.is_some_and(|it| now() + wait.as_secs_f64() > it) {
            return false;
        }
        tokens.left -= 1.0;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        true
    }
}

impl Tokens {
    /// How long the next taker has to wait.
    fn wait(&mut self, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.counted).as_secs_f64() * self.rate;
        self.left = (self.left + gained).min(self.burst);
        self.counted = now;
        Duration::from_secs_f64(((1.0 - self.left) / self.rate).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tokens {
        fn take(&mut self, now: Instant) -> Duration {
            let wait = self.wait(now);
            self.left -= 1.0;
            wait
        }
    }

    #[tokio::test]
    async fn what_would_wait_too_long_takes_no_turn() {
        let bucket = Bucket::new(0.1, 2.0);
        assert!(
            bucket.take_until(Some(now() + 5.0)).await && !bucket.take_until(Some(now() - 1.0)).await,
            "it is late already"
        );
        bucket.take().await;
        for _ in 0..100 {
            assert!(!bucket.take_until(Some(now() + 5.0)).await, "a turn comes every ten seconds");
        }
        let left = bucket.tokens.lock().await.left;
        assert!((0.0..1.0).contains(&left), "{left}");
    }

    #[test]
    fn a_burst_goes_at_once_and_what_follows_at_the_rate() {
        let start = Instant::now();
        let mut tokens = Tokens { rate: 2.0, burst: 5.0, left: 5.0, counted: start };
        assert!((0..5).all(|_| tokens.take(start).is_zero()));
        assert_eq!(tokens.take(start), Duration::from_millis(500));
        let later = start + Duration::from_millis(500);
        assert_eq!(tokens.take(later), Duration::from_millis(500));
    }

    #[test]
    fn rest_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut tokens = Tokens { rate: 2.0, burst: 5.0, left: 0.0, counted: start };
        let later = start + Duration::from_secs(3600);
        assert!((0..5).all(|_| tokens.take(later).is_zero()));
        assert!(!tokens.take(later).is_zero());
    }
}
