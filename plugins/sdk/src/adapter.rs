//! Between the contract's records of text and an author's types. It answers itself where a configuration
//! cannot be read.

use crate::bindings::exports::kurator::cluster_plugin::planner::Guest;
use crate::bindings::kurator::cluster_plugin::types as wit;
use crate::{Descriptor, Diagnostic, Fact, FactValue, Plan, Plugin, Request, Step, Stop};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// The component of a [`Plugin`].
pub struct Adapter<P>(PhantomData<P>);

impl<P: Plugin> Guest for Adapter<P> {
    fn describe() -> wit::Descriptor {
        crate::log::report_panics();
        describe(P::describe())
    }

    fn validate(req: wit::Request) -> Vec<Diagnostic> {
        crate::log::report_panics();
        match read::<P::Config>(req) {
            Ok(request) => P::validate(&request),
            Err(Stop::Invalid(diagnostics)) => diagnostics,
            Err(_) => {
                vec![Diagnostic::error("MalformedRequest", "", "the host sent a request that cannot be read")]
            }
        }
    }

    fn plan(req: wit::Request) -> Result<wit::Outcome, wit::Failure> {
        crate::log::report_panics();
        match read::<P::Config>(req).and_then(|request| P::plan(&request)) {
            Ok(plan) => Ok(wit::Outcome::Complete(write(plan))),
            Err(Stop::Needs(needs)) => Ok(wit::Outcome::Needs(needs.into_iter().map(need).collect())),
            Err(Stop::Pending(diagnostics)) => Ok(wit::Outcome::Pending(diagnostics)),
            Err(Stop::Invalid(diagnostics)) => Err(wit::Failure::Invalid(diagnostics)),
            Err(Stop::Unsupported(diagnostic)) => Err(wit::Failure::Unsupported(diagnostic)),
            Err(Stop::Internal(message)) => Err(wit::Failure::Internal(message)),
        }
    }
}

fn describe(descriptor: Descriptor) -> wit::Descriptor {
    wit::Descriptor {
        name: descriptor.name.to_owned(),
        version: descriptor.version.to_owned(),
        category: descriptor.category.to_owned(),
        config_schema: descriptor.config_schema.to_owned(),
        requires: serde_json::json!({
            "steps": descriptor.steps, "facts": descriptor.facts,
            "plugins": descriptor.requires.plugins, "capabilities": descriptor.requires.capabilities,
        })
        .to_string(),
        extra: "{}".to_owned(),
    }
}

fn read<C: DeserializeOwned>(req: wit::Request) -> Result<Request<C>, Stop> {
    let config = serde_json::from_str(&req.config)
        .map_err(|error| Stop::Invalid(vec![Diagnostic::error("InvalidConfig", "", error.to_string())]))?;
    Ok(Request {
        operation: req.operation,
        host_version: req.host.version,
        features: req.host.features,
        installed_version: req.installed_version,
        previous_config: req.previous_config.map(|text| json(&text)).transpose()?,
        config,
        facts: req.facts.into_iter().map(fact).collect::<Result<_, _>>()?,
    })
}

fn fact(fact: wit::Fact) -> Result<Fact, Stop> {
    let value = match fact.value {
        wit::FactValue::Present(text) => FactValue::Present(json(&text)?),
        wit::FactValue::Absent => FactValue::Absent,
        wit::FactValue::Denied(why) => FactValue::Denied(why),
        wit::FactValue::Unknown(why) => FactValue::Unknown(why),
    };
    Ok(Fact { key: fact.key, value })
}

fn json(text: &str) -> Result<Value, Stop> {
    serde_json::from_str(text).map_err(|error| Stop::Internal(error.to_string()))
}

fn write(plan: Plan) -> wit::Plan {
    let outputs = plan.outputs.into_iter().map(|(name, text)| (name, Value::String(text)));
    let outputs: serde_json::Map<String, Value> = outputs.collect();
    let extra = if outputs.is_empty() {
        "{}".to_owned()
    } else {
        serde_json::json!({ "outputs": outputs }).to_string()
    };
    wit::Plan {
        steps: plan.steps.into_iter().map(step).collect(),
        removal: plan.removal.into_iter().map(step).collect(),
        diagnostics: plan.diagnostics,
        extra,
    }
}

fn step(step: Step) -> wit::Step {
    wit::Step { id: step.id, kind: step.kind.to_owned(), spec: text(&step.spec), after: step.after }
}

fn need(need: crate::Need) -> wit::Need {
    wit::Need { key: need.key, query: text(&need.query) }
}

/// As `to_string`, without the detour over formatting: most of what a plugin does is writing JSON.
fn text(value: &Value) -> String {
    // Writing a value to memory cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
