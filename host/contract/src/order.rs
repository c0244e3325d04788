//! The order in which the steps of a plan are carried out.

use std::collections::{BTreeSet, HashMap};

use crate::Step;

/// Steps that are not done and whose predecessors are, in the order of the plan.
pub fn runnable<'a>(steps: &'a [Step], done: &BTreeSet<String>) -> Vec<&'a Step> {
    let is_done = |id: &String| done.contains(id);
    steps.iter().filter(|it| !is_done(&it.id) && it.after.iter().all(is_done)).collect()
}

/// What keeps a plan from ever being finished: an id used twice, a predecessor that does not exist, a circle.
/// Each predecessor is looked at once or twice, however many there are and however often they are named.
pub fn flaw(steps: &[Step]) -> Option<String> {
    let mut places = HashMap::with_capacity(steps.len());
    for (place, step) in steps.iter().enumerate() {
        if places.insert(step.id.as_str(), place).is_some() {
            return Some(format!("the id {:?} is used twice", step.id));
        }
    }
    let mut before = Vec::with_capacity(steps.len());
    for step in steps {
        let mut predecessors = Vec::with_capacity(step.after.len());
        for id in &step.after {
            match places.get(id.as_str()) {
                Some(place) => predecessors.push(*place),
                None => return Some(format!("step {:?} comes after {id:?}, which is not there", step.id)),
            }
        }
        before.push(predecessors);
    }
    circle(&before).map(|place| format!("step {:?} comes after itself", steps[place].id))
}

/// A step in a circle, if there is one. `before` has the places of each step's predecessors.
fn circle(before: &[Vec<usize>]) -> Option<usize> {
    let mut awaited: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut after = vec![Vec::new(); before.len()];
    for (place, predecessors) in before.iter().enumerate() {
        predecessors.iter().for_each(|predecessor| after[*predecessor].push(place));
    }
    let mut free: Vec<usize> = (0..before.len()).filter(|place| awaited[*place] == 0).collect();
    while let Some(done) = free.pop() {
        for place in &after[done] {
            awaited[*place] -= 1;
            if awaited[*place] == 0 {
                free.push(*place);
            }
        }
    }
    // What is never free has a predecessor that is never free either, so the way back comes round.
    let mut place = awaited.iter().position(|count| *count > 0)?;
    let mut seen = vec![false; before.len()];
    while !std::mem::replace(&mut seen[place], true) {
        place = before[place].iter().copied().find(|predecessor| awaited[*predecessor] > 0)?;
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(id: &str, after: &[&str]) -> Step {
        Step {
            id: id.into(),
            kind: "k8s.apply/v1".into(),
            spec: json!({}),
            after: after.iter().map(|it| it.to_string()).collect(),
        }
    }

    #[test]
    fn a_step_runs_when_all_before_it_are_done() {
        let steps = [
            step("crds", &[]),
            step("operator", &["crds"]),
            step("rules", &[]),
            step("wait", &["operator", "rules"]),
        ];
        let ids = |done: &[&str]| -> Vec<String> {
            let done = done.iter().map(|it| it.to_string()).collect();
            runnable(&steps, &done).into_iter().map(|it| it.id.clone()).collect()
        };
        assert_eq!(ids(&[]), ["crds", "rules"]);
        assert_eq!(ids(&["crds"]), ["operator", "rules"]);
        assert_eq!(ids(&["crds", "operator"]), ["rules"]);
        assert_eq!(ids(&["crds", "operator", "rules"]), ["wait"]);
    }

    #[test]
    fn flaws_of_a_plan_are_found_before_its_first_step() {
        assert_eq!(flaw(&[step("a", &[]), step("b", &["a"])]), None);
        assert_eq!(flaw(&[step("a", &[]), step("a", &[])]).unwrap(), "the id \"a\" is used twice");
        assert_eq!(flaw(&[step("a", &["z"])]).unwrap(), "step \"a\" comes after \"z\", which is not there");
        assert_eq!(flaw(&[step("a", &["b"]), step("b", &["a"])]).unwrap(), "step \"a\" comes after itself");
        assert_eq!(flaw(&[step("a", &["a", "a"])]).unwrap(), "step \"a\" comes after itself");
    }

    #[test]
    fn the_step_that_is_named_is_in_the_circle() {
        let steps = [
            step("first", &[]),
            step("late", &["first", "b"]),
            step("b", &["c"]),
            step("c", &["first", "d"]),
            step("d", &["b"]),
        ];
        assert_eq!(flaw(&steps).unwrap(), "step \"b\" comes after itself");
    }
}
