//! How much of the answers of workload clusters there may be in memory at once, for each cluster and for all
//! of them: whoever finds no room waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What an answer may take before it counts as a large one: of its text, and of what is kept of it.
pub(super) const SMALL: Size = Size { text: 128 << 10, kept: 512 << 10 };
/// What one may take at all: some 5000 objects of which a handful of parts is read. Lists are read in
/// pages, each of which may have so much text; what is kept of all of them counts together.
pub(super) const LARGE: Size = Size { text: 4 << 20, kept: 16 << 20 };
/// How many small answers one cluster may be giving at once, and all of them together.
const SMALL_EACH: usize = 4;
const SMALL_ALL: usize = 32;
/// How many large ones all may be giving; each cluster may be giving one.
const LARGE_ALL: usize = 3;
/// How long one may be large: what it has taken by then others get.
const LARGE_TIME: Duration = Duration::from_secs(60);

/// How long a whole answer may take, however steadily it comes. While others are waited for, this time stands
/// still.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) text: usize,
    pub(super) kept: usize,
}

/// The budget of all clusters; cheap to clone.
#[derive(Clone)]
pub(super) struct Budget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    answer_time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::with(ANSWER_TIME)
    }
}

impl Budget {
    /// The budget where an answer may take so long.
    pub(super) fn with(answer_time: Duration) -> Budget {
        Budget {
            small: Arc::new(Semaphore::new(SMALL_ALL)),
            large: Arc::new(Semaphore::new(LARGE_ALL)),
            answer_time,
        }
    }

    /// A cluster's part of it.
    pub(super) fn share(&self) -> Share {
        let own = Budget {
            small: Arc::new(Semaphore::new(SMALL_EACH)),
            large: Arc::new(Semaphore::new(1)),
            ..self.clone()
        };
        Share { own, all: self.clone() }
    }
}

/// What one cluster may use. Whoever waits for the part of all has its cluster's already, so that no cluster
/// has more than that many in the queue, and each is served in turn.
pub(super) struct Share {
    own: Budget,
    all: Budget,
}

/// Permits of a cluster and of all.
type Permits = (OwnedSemaphorePermit, OwnedSemaphorePermit);

async fn both(own: &Arc<Semaphore>, all: &Arc<Semaphore>) -> Option<Permits> {
    // They are never closed.
    let own = own.clone().acquire_owned().await.ok()?;
    Some((own, all.clone().acquire_owned().await.ok()?))
}

impl Share {
    /// Begins to read something, of which nothing is in memory yet.
    pub(super) fn hold(&self) -> Hold<'_> {
        Hold { share: self, small: None, large: None, kept: 0 }
    }
}

/// What one reading has in memory: one answer, or the pages of lists that are used together. It has to
/// live for as long as they do.
pub(super) struct Hold<'a> {
    share: &'a Share,
    small: Option<Permits>,
    large: Option<(Permits, Instant)>,
    /// What was kept of earlier answers.
    kept: usize,
}

impl Hold<'_> {
    /// Waits until an answer may be read, and says how much of it. Whoever holds a large one waits for
    /// nothing, so that somebody always gets on.
    pub(super) async fn begin(&mut self) -> Size {
        if self.large.is_none() && self.small.is_none() {
            self.small = both(&self.share.own.small, &self.share.all.small).await;
        }
        self.left()
    }

    /// The answer does not fit: waits until it may be a large one, and says how much of it may be read.
    pub(super) async fn enlarge(&mut self) -> Size {
        if self.large.is_none() {
            self.large = both(&self.share.own.large, &self.share.all.large)
                .await
                .map(|it| (it, Instant::now() + LARGE_TIME));
            self.small = None;
        }
        self.left()
    }

    /// How long an answer may take.
    pub(super) fn answer_time(&self) -> Duration {
        self.share.all.answer_time
    }

    /// Whether it is large already.
    pub(super) fn is_large(&self) -> bool {
        self.large.is_some()
    }

    /// When it has been large for too long.
    pub(super) fn until(&self) -> Option<Instant> {
        self.large.as_ref().map(|(_, until)| *until)
    }

    /// An answer was read, and so much kept of it.
    pub(super) fn keep(&mut self, kept: usize) {
        self.kept += kept;
    }

    fn left(&self) -> Size {
        let size = if self.large.is_some() { LARGE } else { SMALL };
        Size { kept: size.kept.saturating_sub(self.kept), ..size }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_cluster_takes_no_more_than_its_share_and_the_others_get_on() {
        let all = Budget::default();
        let (hostile, other) = (all.share(), all.share());
        let mut held: Vec<Hold<'_>> = (0..SMALL_EACH).map(|_| hostile.hold()).collect();
        for hold in &mut held {
            assert_eq!(hold.begin().await, SMALL);
        }
        assert_eq!(hostile.hold().begin().now_or_never(), None);
        assert_eq!(other.hold().begin().now_or_never(), Some(SMALL));
        assert_eq!(held[0].enlarge().await, LARGE);
        assert_eq!(held[1].enlarge().now_or_never(), None, "one large one for each cluster");
        let mut large = other.hold();
        assert_eq!(large.enlarge().now_or_never(), Some(LARGE));
    }

    #[tokio::test]
    async fn what_finds_no_room_waits_and_what_is_large_waits_for_nothing() {
        let all = Budget::default();
        let shares: Vec<Share> = (0..=LARGE_ALL).map(|_| all.share()).collect();
        let mut held: Vec<Hold<'_>> = shares[1..].iter().map(Share::hold).collect();
        for hold in &mut held {
            hold.begin().await;
            hold.enlarge().await;
            hold.keep(1000);
            assert_eq!(hold.begin().now_or_never(), Some(Size { kept: LARGE.kept - 1000, ..LARGE }));
        }
        let mut waiting = shares[0].hold();
        assert_eq!(waiting.begin().await, SMALL);
        assert_eq!(waiting.enlarge().now_or_never(), None);
        drop(held.pop());
        assert_eq!(waiting.enlarge().await, LARGE);
        assert!(waiting.is_large() && waiting.until().is_some());
    }
}
