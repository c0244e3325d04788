//! When leftovers are looked for, and what is said of them.

use expect_test::{Expect, expect};

use super::*;

#[test]
fn what_may_be_another_clusters_is_neither_removed_nor_forgotten() {
    let mut sweep = Sweep::default();
    sweep.found(
        Leftovers {
            sign: Some("subnet-1 has the tag kubernetes.io/cluster/prod=owned".into()),
            ..all_of_it()
        },
        0.0,
    );
    sweep.done(0.0);
    assert_eq!(sweep.removable(), vec![]);
    assert!(!sweep.is_over() && sweep.is_doubtful("a0123") && sweep.next().is_some());
    let text = sweep.text().unwrap_or_default();
    for part in ["subnet-1 has the tag", "load-balancer/a0123", "force-delete"] {
        assert!(text.contains(part), "{text}");
    }
    sweep.found(all_of_it(), 5.0);
    assert!(!sweep.removable().is_empty() && !sweep.is_doubtful("a0123"));
}

fn problem(code: &str, who: ActionNeeded) -> Problem {
    Problem { code: code.into(), message: format!("tag:GetResources: {code}"), who }
}

fn all_of_it() -> Leftovers {
    Leftovers { left: left(&one_of_each()), ..Leftovers::default() }
}

fn unread(problem: Problem) -> Leftovers {
    Leftovers { unread: Some(problem), ..Leftovers::default() }
}

fn check_text(sweep: &Sweep, expected: Expect) {
    expected.assert_eq(&sweep.text().unwrap_or_default());
}

#[test]
fn a_cluster_without_leftovers_is_looked_at_once() {
    let mut sweep = Sweep::default();
    assert!(sweep.is_due(0.0) && sweep.is_unknown() && !sweep.is_over());
    check_text(&sweep, expect!["looking for what the cluster's own controllers left in AWS"]);
    sweep.found(Leftovers::default(), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over() && !sweep.is_due(1e9));
    check_text(&sweep, expect![""]);
}

#[test]
fn after_something_was_removed_it_looks_again_until_nothing_is_left() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    check_text(
        &sweep,
        expect![
            "after what the cluster's own controllers left: load-balancer/a0123, load-balancer/k8s-shop, target-group/k8s-shop-web, security-group-rules/prod-node, security-group/k8s-elb-a0123, 2 more"
        ],
    );
    while let Some(next) = sweep.removable().first() {
        sweep.removed(next, Ok(()), 1.0);
    }
    sweep.done(1.0);
    assert!(sweep.is_over() && !sweep.is_due(5.9) && sweep.is_due(6.0));
    sweep.found(Leftovers::default(), 6.0);
    sweep.done(6.0);
    assert!(sweep.is_over() && sweep.next().is_none());
}

#[test]
fn what_is_refused_is_tried_again_ever_later_and_named() {
    let mut sweep = Sweep::default();
    let mut at = 0.0;
    let mut pauses = Vec::new();
    for _ in 0..9 {
        sweep.found(all_of_it(), at);
        for it in sweep.removable() {
            sweep.removed(&it, Err(problem("DependencyViolation", ActionNeeded::None)), at);
        }
        assert_eq!(sweep.removable(), vec![], "not twice in one look");
        sweep.done(at);
        assert!(!sweep.is_over());
        pauses.push(sweep.next().unwrap() - at);
        at = sweep.next().unwrap();
    }
    assert_eq!(pauses, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]);
    check_text(
        &sweep,
        expect![
            "after what the cluster's own controllers left: load-balancer/a0123 (tag:GetResources: DependencyViolation), load-balancer/k8s-shop (tag:GetResources: DependencyViolation), target-group/k8s-shop-web, security-group-rules/prod-node, security-group/k8s-elb-a0123, 2 more"
        ],
    );
}

#[test]
fn a_denied_read_is_said_and_holds_nothing_up() {
    let mut sweep = Sweep::default();
    sweep.found(unread(problem("AccessDenied", ActionNeeded::CloudAdmin)), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over() && !sweep.is_unknown());
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for, and may stay: grant what is missing, or look yourself (tag:GetResources: AccessDenied)"
        ],
    );
}

#[test]
fn what_could_be_read_beside_a_denied_read_is_removed() {
    let interface = left(&one_of_each()).pop().unwrap();
    let mut sweep = Sweep::default();
    let problem = problem("AccessDenied", ActionNeeded::CloudAdmin);
    sweep.found(
        Leftovers { left: vec![interface.clone()], unread: Some(problem), ..Leftovers::default() },
        0.0,
    );
    assert!(!sweep.is_over() && !sweep.is_unknown());
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for, and may stay: grant what is missing, or look yourself (tag:GetResources: AccessDenied); after what the cluster's own controllers left: network-interface/eni-1"
        ],
    );
    assert_eq!(sweep.removable(), std::slice::from_ref(&interface));
    sweep.removed(&interface, Ok(()), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over());
}

#[test]
fn a_read_that_fails_otherwise_is_tried_again_first() {
    let mut sweep = Sweep::default();
    sweep.found(unread(problem("Throttling", ActionNeeded::None)), 0.0);
    sweep.done(0.0);
    assert!(!sweep.is_over() && sweep.is_unknown() && sweep.is_due(5.0));
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for yet: tag:GetResources: Throttling"
        ],
    );
    sweep.found(Leftovers::default(), 5.0);
    assert!(sweep.is_over());
}

#[test]
fn a_read_that_never_answers_is_given_up_and_said() {
    let mut sweep = Sweep::default();
    for look in 0..7 {
        sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), f64::from(look));
        assert!(sweep.is_unknown());
    }
    sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), 7.0);
    assert!(sweep.is_over() && sweep.text().is_some_and(|it| it.contains("cannot be looked for")));
}

#[test]
fn nothing_is_concluded_from_problems_other_than_refusals() {
    for code in ["DependencyThrottle", "PaginationTokenExpiredException", "ExpiredToken", "AuthFailure"] {
        let mut sweep = Sweep::default();
        sweep.found(unread(problem(code, ActionNeeded::CloudAdmin)), 0.0);
        sweep.done(0.0);
        assert!(!sweep.is_over() && sweep.is_unknown() && sweep.is_due(5.0), "{code}");
    }
    for code in ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"] {
        let mut sweep = Sweep::default();
        sweep.found(unread(problem(code, ActionNeeded::CloudAdmin)), 0.0);
        assert!(sweep.is_over(), "{code}");
    }
}

#[test]
fn what_was_known_is_not_forgotten_when_it_may_not_be_read_any_more() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    let (interface, rest) = (left(&one_of_each()).pop().unwrap(), left(&one_of_each()).len() - 1);
    sweep.removed(&interface, Ok(()), 0.0);
    let denied = Some(problem("AccessDenied", ActionNeeded::CloudAdmin));
    sweep.found(
        Leftovers { left: vec![interface.clone()], unread: denied.clone(), ..Leftovers::default() },
        5.0,
    );
    assert!(!sweep.is_over());
    let mut removed = 0;
    while let Some(next) = sweep.removable().first() {
        sweep.removed(next, Ok(()), 5.0);
        removed += 1;
    }
    assert_eq!(removed, rest + 1, "each once, what is gone too: removing that is done at once");
    sweep.found(Leftovers { unread: denied, ..Leftovers::default() }, 10.0);
    assert!(sweep.is_over());
}

#[test]
fn looks_that_nobody_answers_forget_nothing_when_they_are_given_up() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    for look in 1..9 {
        sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), f64::from(look));
    }
    assert!(!sweep.is_over() && !sweep.removable().is_empty());
}

#[test]
fn a_refused_deletion_asks_for_another_sweep_ever_later() {
    let mut sweep = Sweep::default();
    sweep.found(Leftovers::default(), 0.0);
    sweep.asked_for(1.0);
    sweep.asked_for(3.0);
    assert_eq!(sweep.next(), Some(6.0), "once, however often it is refused meanwhile");
    assert!(sweep.is_over(), "nothing is known to be left");
    sweep.found(Leftovers::default(), 6.0);
    sweep.asked_for(7.0);
    assert_eq!(sweep.next(), Some(17.0));
}

#[test]
fn a_read_that_fails_later_forgets_nothing() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    sweep.found(unread(problem("Throttling", ActionNeeded::None)), 5.0);
    assert!(!sweep.is_over());
}

#[test]
fn what_stays_is_named_and_holds_nothing_up() {
    let mut sweep = Sweep::default();
    sweep.collect(Collected::NOTHING, 0.0);
    sweep.found(all_of_it(), 0.0);
    let interface = sweep.removable();
    assert_eq!(names(&interface), "network-interface/eni-1", "nobody needs it, and it holds its subnet");
    sweep.removed(&interface[0], Ok(()), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over());
    check_text(
        &sweep,
        expect![
            "left in AWS, as annotation aws.cluster.x-k8s.io/external-resource-gc or aws.cluster.x-k8s.io/external-resource-tasks-gc says: load-balancer/a0123, load-balancer/k8s-shop, target-group/k8s-shop-web, security-group/k8s-elb-a0123, security-group/k8s-traffic-prod"
        ],
    );
}

#[test]
fn what_stayed_goes_once_the_annotation_is_gone() {
    let mut sweep = Sweep::default();
    sweep.collect(Collected::NOTHING, 0.0);
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    sweep.collect(Collected::NOTHING, 1.0);
    assert!(!sweep.is_due(1.0), "nothing is new");
    sweep.collect(Collected::default(), 1.0);
    assert!(sweep.is_due(1.0));
    sweep.found(all_of_it(), 1.0);
    assert!(
        !sweep.is_over() && sweep.removable().iter().any(|it| it.kind == LeftoverKind::ClassicLoadBalancer)
    );
}
