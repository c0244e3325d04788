//! Turns what became of actions into events.

use model::{Action, ActionNeeded, Key, Outcome};

use super::refusals::Refusals;
use crate::management::Event;

/// The events of these actions. A refusal that was reported before has none, and what succeeded alike has one
/// together.
pub fn events(actions: &[Action], outcomes: &[(Key, Outcome)], refusals: &Refusals) -> Vec<Event> {
    let mut res: Vec<Event> = Vec::new();
    for (key, outcome) in outcomes.iter().rev().filter(|(key, outcome)| !refusals.is_reported(key, outcome)) {
        let Some(action) = actions.iter().find(|it| it.key() == *key) else { continue };
        let Some(note) = note(action, key, outcome) else { continue };
        match res.iter_mut().find(|it| !note.warning && it.reason == note.reason) {
            Some(alike) => alike.message = format!("{key}, {}", alike.message),
            None => res.push(note),
        }
    }
    res.reverse();
    res
}

fn note(action: &Action, key: &Key, outcome: &Outcome) -> Option<Event> {
    let (verb, past) = match action {
        Action::Create { .. } => ("Create", "created"),
        Action::Update { .. } => ("Update", "updated"),
        Action::Tag { .. } => ("Tag", "tagged"),
        Action::Delete { .. } => ("Delete", "deleted"),
        Action::Confirm { .. } => return None,
    };
    let word = key.kind.event_word();
    let (warning, reason, message) = match outcome {
        Outcome::Done => (false, format!("Successful{verb}{word}"), format!("{key}: {past}")),
        Outcome::Refused { retry: true, who: ActionNeeded::None, .. } => return None,
        Outcome::Refused { code, message, .. } => {
            (true, format!("Failed{verb}{word}"), format!("{key}: {code}: {message}"))
        }
        Outcome::Unknown { message } => {
            (true, format!("Unknown{verb}{word}"), format!("{key}: outcome not known: {message}"))
        }
    };
    Some(Event { warning, reason, action: format!("{verb} {key}").chars().take(128).collect(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ElasticIp;
    use tokio::time::Instant;

    #[test]
    fn a_refusal_is_told_once_and_one_that_passes_by_itself_is_not_told() {
        let is = ElasticIp { name: "a".into() }.into();
        let actions = [Action::Delete { id: "eipalloc-1".into(), is, ids: Default::default() }];
        let key = actions[0].key();
        let refused =
            |retry, who| Outcome::Refused { code: "AuthFailure".into(), message: "No.".into(), retry, who };
        let mut refusals = Refusals::default();
        for (retry, who) in [
            (true, ActionNeeded::CloudAdmin),
            (true, ActionNeeded::SpecAuthor),
            (false, ActionNeeded::SpecAuthor),
            (false, ActionNeeded::None),
        ] {
            let first = events(&actions, &[(key.clone(), refused(retry, who))], &refusals);
            assert_eq!((first[0].warning, first[0].reason.as_str()), (true, "FailedDeleteEIP"));
        }
        assert!(events(&actions, &[(key.clone(), refused(true, ActionNeeded::None))], &refusals).is_empty());
        refusals.record(&[], &[(key.clone(), refused(true, ActionNeeded::CloudAdmin))], Instant::now());
        assert!(
            events(&actions, &[(key.clone(), refused(true, ActionNeeded::CloudAdmin))], &refusals).is_empty()
        );
        assert_eq!(events(&actions, &[(key, Outcome::Done)], &refusals)[0].reason, "SuccessfulDeleteEIP");
    }

    #[test]
    fn what_succeeded_alike_is_told_at_once_and_each_failure_by_itself() {
        let delete = |name: &str| Action::Delete {
            id: name.into(),
            is: ElasticIp { name: name.into() }.into(),
            ids: Default::default(),
        };
        let actions = ["a", "b", "c", "d"].map(delete);
        let no = Outcome::Refused {
            code: "No".into(),
            message: "no".into(),
            retry: true,
            who: ActionNeeded::SpecAuthor,
        };
        let outcomes = [Outcome::Done, no.clone(), Outcome::Done, no];
        let outcomes: Vec<_> = actions.iter().map(Action::key).zip(outcomes).collect();
        let messages: Vec<_> =
            events(&actions, &outcomes, &Refusals::default()).into_iter().map(|it| it.message).collect();
        assert_eq!(
            messages,
            ["elastic-ip/b: No: no", "elastic-ip/a, elastic-ip/c: deleted", "elastic-ip/d: No: no"]
        );
    }
}
