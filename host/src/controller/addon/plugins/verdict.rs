//! What follows from the answer of a plugin: a plan that is granted, or why there is none.

use addons::grant::{self, Grants};
use addons::{DesiredAddOn, authorize_removal, too_large_to_record};
use contract::{AddOnPlan, Diagnostic, Failure, Severity, UNSUPPORTED_KUBERNETES_VERSION};
use crds::conditions::reason;

/// What follows from it.
pub enum Verdict {
    /// A plan that was checked and granted, and what the plugin warns of.
    Plan(AddOnPlan, Vec<String>),
    /// What is installed is left as it is, until somebody consents to an upgrade or makes its plugin usable
    /// again: a reason for a condition, and why.
    Left(&'static str, String),
    /// Nobody has to act.
    Pending(String),
    /// The plugin knows nothing for the cluster's version of Kubernetes. What to do.
    Unsupported(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(String, String),
}

impl Verdict {
    /// The same, with what was warned of before there was a plan.
    #[must_use]
    pub fn and_warn(self, more: Vec<String>) -> Verdict {
        match self {
            Verdict::Plan(plan, warnings) => Verdict::Plan(plan, more.into_iter().chain(warnings).collect()),
            other => other,
        }
    }
}

/// What follows where a plugin did not answer.
pub fn failed(desired: &DesiredAddOn, reason: &str, message: String) -> Verdict {
    Verdict::Refused(reason.to_owned(), format!("plugin {}: {message}", desired.module))
}

/// What follows from a plan: whether it is granted today.
pub fn authorized(desired: &DesiredAddOn, plan: AddOnPlan, grants: &Grants) -> Verdict {
    let errors: Vec<Diagnostic> =
        plan.diagnostics.iter().filter(|it| it.severity == Severity::Error).cloned().collect();
    if !errors.is_empty() {
        return Verdict::Refused(reason::INVALID_CONFIGURATION.into(), text(desired, &errors));
    }
    let mut denials = grant::authorize(&plan.steps, grants);
    denials.extend(authorize_removal(&plan.removal, grants));
    if !denials.is_empty() {
        let message = format!("plugin {}: {}", desired.module, grant::text(&denials));
        return Verdict::Refused(reason::PLAN_DENIED.into(), message);
    }
    if let Some(why) = too_large_to_record(&plan, &desired.config) {
        let message = format!("plugin {}: {why}", desired.module);
        return Verdict::Refused(reason::RECORD_TOO_LARGE.into(), message);
    }
    let warnings = plan.diagnostics.iter().filter(|it| it.severity == Severity::Warning).cloned();
    let warnings = warnings.map(|it| text(desired, &[it])).collect();
    Verdict::Plan(plan, warnings)
}

/// What may help whoever waits for the plan longer than it should take.
pub fn hints(desired: &DesiredAddOn, plan: &AddOnPlan) -> Vec<String> {
    plan.diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Info)
        .map(|it| text(desired, std::slice::from_ref(it)))
        .collect()
}

/// What follows from its refusal.
pub fn refused(desired: &DesiredAddOn, failure: Failure) -> Verdict {
    match failure {
        Failure::Invalid(diagnostics) => {
            Verdict::Refused(reason::INVALID_CONFIGURATION.into(), text(desired, &diagnostics))
        }
        Failure::Unsupported(diagnostic) if diagnostic.code == UNSUPPORTED_KUBERNETES_VERSION => {
            Verdict::Unsupported(text(desired, &[diagnostic]))
        }
        Failure::Unsupported(diagnostic) => {
            Verdict::Refused(reason::UNSUPPORTED.into(), text(desired, &[diagnostic]))
        }
        Failure::Internal(message) => {
            Verdict::Refused(reason::PLUGIN_FAILED.into(), format!("plugin {}: {message}", desired.module))
        }
    }
}

/// What it says of the settings of an add-on, by their paths.
pub fn text(desired: &DesiredAddOn, diagnostics: &[Diagnostic]) -> String {
    let path = desired.path_of_config();
    let one = |diagnostic: &Diagnostic| {
        format!("{path}{}: {}", diagnostic.path.replace('/', "."), diagnostic.message)
    };
    diagnostics.iter().map(one).collect::<Vec<_>>().join("; ")
}
