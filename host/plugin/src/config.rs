//! Checks a configuration against the JSON Schema that a plugin published. Patterns run in linear time, and
//! no schema is fetched from anywhere.

use crate::error::PluginError;
use contract::{Diagnostic, Severity};
use jsonschema::PatternOptions;
use serde_json::Value;

/// Diagnostics that one configuration gets at most.
const MOST: usize = 16;

/// What is wrong with `config` by `schema`; empty when nothing is.
///
/// # Errors
/// [`PluginError::InvalidSchema`] when the schema is none.
pub fn check_config(schema: &Value, config: &Value) -> Result<Vec<Diagnostic>, PluginError> {
    let validator = jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| PluginError::InvalidSchema { detail: error.to_string() })?;
    let diagnostic = |error: jsonschema::ValidationError<'_>| Diagnostic {
        severity: Severity::Error,
        code: "InvalidConfig".to_owned(),
        path: error.instance_path().to_string(),
        message: error.to_string(),
    };
    Ok(validator.iter_errors(config).take(MOST).map(diagnostic).collect())
}
