//! Answers that are kept for a while: good ones for long; what is wrong or not known is asked again soon at
//! first, and less and less often. It never judges an answer itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a good answer is good. Whoever changes a role waits no longer than this to be told.
pub const GOOD: Duration = Duration::from_secs(30 * 60);
/// How soon what is wrong or not known is looked at again: soon at first, because a role or an issuer may
/// just have been made.
const FIRST: Duration = Duration::from_secs(5);
/// How soon at last.
const LAST: Duration = Duration::from_secs(300);

/// Answers by what was asked.
pub struct Remembered<T> {
    /// How long a good answer is good.
    lasts: Duration,
    known: Mutex<HashMap<String, Known<T>>>,
}

struct Known<T> {
    answer: T,
    until: Instant,
    /// How long it is good for.
    good: Duration,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self::lasting(GOOD)
    }
}

impl<T> Remembered<T> {
    /// Good answers are good for so long.
    pub fn lasting(lasts: Duration) -> Self {
        Self { lasts, known: Mutex::default() }
    }
}

impl<T: Clone> Remembered<T> {
    /// The answer that is known, or else what `ask` says, and when it is asked again.
    pub async fn answer(
        &self,
        question: String,
        is_good: impl Fn(&T) -> bool,
        ask: impl Future<Output = T>,
    ) -> (T, Instant) {
        let before = match self.lock().get(&question) {
            Some(known) if known.until > Instant::now() => return (known.answer.clone(), known.until),
            known => known.filter(|it| !is_good(&it.answer)).map(|it| it.good),
        };
        let answer = ask.await;
        let good = if is_good(&answer) { self.lasts } else { again(before) };
        let until = Instant::now() + good;
        let mut all = self.lock();
        // Questions that nobody asks any more.
        all.retain(|_, it| it.until + GOOD > Instant::now());
        all.insert(question, Known { answer: answer.clone(), until, good });
        (answer, until)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known<T>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When what is not good is asked again; `before`: how long the answer before counted, if that was not good
/// either.
fn again(before: Option<Duration>) -> Duration {
    before.map_or(FIRST, |before| (before * 2).min(LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_asked_again_less_and_less_often() {
        let mut waits = vec![again(None)];
        while waits.last() != Some(&LAST) {
            waits.push(again(waits.last().copied()));
        }
        assert_eq!(waits.iter().map(Duration::as_secs).collect::<Vec<_>>(), [5, 10, 20, 40, 80, 160, 300]);
    }

    #[tokio::test]
    async fn a_question_is_asked_once_and_another_is_another() {
        let remembered = Remembered::default();
        let ask = async |question: &str, answer: u32| {
            remembered.answer(question.to_owned(), |_| true, async { answer }).await.0
        };
        assert_eq!((ask("one", 1).await, ask("one", 2).await, ask("two", 3).await), (1, 1, 3));
    }
}
