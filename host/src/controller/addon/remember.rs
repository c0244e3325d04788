//! Answers that are kept for a while: good ones for long; what is wrong or not known is asked again soon at first, and less and less often.
//! It never judges an answer itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a good answer is good. Whoever changes a role waits no longer than this to be told.
pub const GOOD: Duration = Duration::from_secs(30 * 60);
/// How soon what is wrong or not known is looked at again: soon at first, because a role or an issuer may just have been made.
const FIRST: Duration = Duration::from_secs(5);
/// How soon at last.
const LAST: Duration = Duration::from_secs(300);

/// Answers by what was asked.
pub struct Remembered<T> {
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
        Self { known: Mutex::default() }
    }
}

impl<T: Clone> Remembered<T> {
    /// The answer that is known, or else what `ask` says, and when it is asked again.
    pub async fn answer(&self, question: String, is_good: impl Fn(&T) -> bool, ask: impl Future<Output = T>) -> (T, Instant) {
        let before = match self.lock().get(&question) {
            Some(known) if known.until > Instant::now() => return (known.answer.clone(), known.until),
            known => known.filter(|it| !is_good(&it.answer)).map(|it| it.good),
        };
        let answer = ask.await;
        let good = how_long(is_good(&answer), before);
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

/// `before`: how long the answer before counted, if that was not good either.
fn how_long(is_good: bool, before: Option<Duration>) -> Duration {
    match before {
        _ if is_good => GOOD,
        Some(before) => (before * 2).min(LAST),
        None => FIRST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_asked_again_less_and_less_often() {
        let mut waits = vec![how_long(false, None)];
        while waits.last() != Some(&LAST) {
            waits.push(how_long(false, waits.last().copied()));
        }
        assert_eq!(waits.iter().map(Duration::as_secs).collect::<Vec<_>>(), [5, 10, 20, 40, 80, 160, 300]);
        assert_eq!(how_long(true, Some(LAST)), GOOD);
    }

    #[tokio::test]
    async fn a_question_is_asked_once_and_another_is_another() {
        let remembered = Remembered::default();
        let ask = async |question: &str, answer: u32| remembered.answer(question.to_owned(), |_| true, async { answer }).await.0;
        assert_eq!((ask("one", 1).await, ask("one", 2).await, ask("two", 3).await), (1, 1, 3));
    }
}
