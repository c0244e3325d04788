//! How often a plugin is called that traps or goes beyond a limit: less and less often for the cluster and the
//! configuration with which it does, and as before for all others.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::object_name::ObjectName;

/// How long a plugin rests after its first fault, and at most.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(600);
/// Of how many questions faults are remembered.
const MOST: usize = 4096;

/// Who asked which component with what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    cluster: ObjectName,
    digest: String,
    config: u64,
}

/// What came of a question the last time.
#[derive(Clone, Debug)]
struct Fault {
    /// How often in a row.
    count: u32,
    until: Instant,
    reason: &'static str,
    message: String,
}

/// A fault that is not tried again yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    pub reason: &'static str,
    /// What went wrong, how often, and when it is tried again.
    pub message: String,
}

/// The faults of all plugins.
#[derive(Default)]
pub struct Faults(Mutex<HashMap<Question, Fault>>);

impl Question {
    pub fn new(cluster: ObjectName, digest: &str, config: &Value) -> Self {
        let mut hasher = DefaultHasher::new();
        config.to_string().hash(&mut hasher);
        Question { cluster, digest: digest.to_owned(), config: hasher.finish() }
    }
}

impl Faults {
    /// Whether a question is not asked now, because it was answered by a fault again and again.
    pub fn resting(&self, question: &Question, now: Instant) -> Option<Resting> {
        let faults = self.lock();
        let fault = faults.get(question).filter(|it| it.until > now)?;
        let seconds = (fault.until - now).as_secs().max(1);
        let message =
            format!("{} ({} times in a row; it is asked again in {seconds} s)", fault.message, fault.count);
        Some(Resting { reason: fault.reason, message })
    }

    /// A call ended by a fault.
    pub fn failed(&self, question: Question, reason: &'static str, message: String, now: Instant) {
        let mut faults = self.lock();
        if faults.len() >= MOST && !faults.contains_key(&question) {
            faults.retain(|_, it| it.until > now);
            let soonest = faults.iter().min_by_key(|(_, it)| it.until).map(|(question, _)| question.clone());
            soonest.filter(|_| faults.len() >= MOST).map(|it| faults.remove(&it));
        }
        let count = faults.get(&question).map_or(0, |it| it.count) + 1;
        let delay = FIRST.saturating_mul(1 << (count - 1).min(16)).min(LONGEST);
        // One fault may be an accident of the host.
        let until = if count > 1 { now + delay } else { now };
        faults.insert(question, Fault { count, until, reason, message });
    }

    /// A call was answered.
    pub fn answered(&self, question: &Question) {
        self.lock().remove(question);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Question, Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(cluster: &str, config: Value) -> Question {
        Question::new(ObjectName::new("default", cluster), "sha256:0", &config)
    }

    fn fail(faults: &Faults, question: &Question, now: Instant) {
        faults.failed(question.clone(), "PluginTrapped", "plan trapped".into(), now);
    }

    #[tokio::test]
    async fn what_fails_again_and_again_is_asked_less_and_less_often() {
        let (faults, one, begin) = (Faults::default(), question("one", json!({})), Instant::now());
        let (mut now, mut asked) = (begin, 0);
        while now < begin + Duration::from_secs(3600) {
            if faults.resting(&one, now).is_none() {
                asked += 1;
                fail(&faults, &one, now);
            }
            now += Duration::from_secs(1);
        }
        assert_eq!(asked, 14, "an hour in which it was looked at every second");
        let resting = faults.resting(&one, now).expect("it rests");
        assert!(resting.message.starts_with("plan trapped (14 times in a row; it is asked again in "));
        faults.answered(&one);
        assert_eq!(faults.resting(&one, now), None);
    }

    #[tokio::test]
    async fn others_are_asked_as_before() {
        let (faults, now) = (Faults::default(), Instant::now());
        let one = question("one", json!({}));
        (0..5).for_each(|_| fail(&faults, &one, now));
        assert!(faults.resting(&one, now).is_some());
        assert_eq!(faults.resting(&question("two", json!({})), now), None);
        assert_eq!(faults.resting(&question("one", json!({"a": 1})), now), None, "it was mended");
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded() {
        let (faults, now) = (Faults::default(), Instant::now());
        for number in 0..MOST + 100 {
            let question = question("one", json!(number));
            (0..2).for_each(|_| fail(&faults, &question, now));
        }
        assert_eq!(faults.lock().len(), MOST);
    }
}
