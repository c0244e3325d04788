//! `cluster-operator run` where something is missing: one sentence says what, and what to set.

use std::process::Command;
use std::time::{Duration, Instant};

/// What the program writes to stderr in an environment that has nothing but `variables`.
fn refusal(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-operator"));
    command
        .arg("run")
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(variables.iter().copied());
    let started = Instant::now();
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(started.elapsed() < Duration::from_secs(30), "nobody waits that long for a refusal");
    String::from_utf8(output.stderr).expect("it is text")
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];

#[test]
fn what_is_missing_is_said_in_one_sentence_with_what_to_set() {
    assert_eq!(
        refusal(&[]),
        "cluster-operator: no management cluster: set KUBECONFIG to the path of its kubeconfig, or run in a Pod of it; no AWS credentials: \
         set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run with a role\n"
    );
    assert_eq!(
        refusal(&KEYS),
        "cluster-operator: no management cluster: set KUBECONFIG to the path of its kubeconfig, or run in a Pod of it\n"
    );
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_said_once_with_its_cause() {
    let text = refusal(&[&KEYS[..], &[("KUBECONFIG", "/nonexistent/kubeconfig")]].concat());
    assert!(
        text.contains("the kubeconfig cannot be used") && text.contains("/nonexistent/kubeconfig"),
        "{text}"
    );
    assert_eq!(text.matches("No such file").count(), 1, "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_pod_without_its_service_account_is_told_so() {
    let text = refusal(
        &[&KEYS[..], &[("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")]].concat(),
    );
    assert!(text.starts_with("cluster-operator: the Pod's service account cannot be used: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
