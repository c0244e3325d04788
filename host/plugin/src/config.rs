//! Checks a configuration against the JSON Schema that a plugin published. Patterns run in linear time, and
//! no schema is fetched from anywhere.

use crate::error::PluginError;
use contract::{Diagnostic, Severity};
use jsonschema::PatternOptions;
use serde_json::Value;

/// Diagnostics that one configuration gets at most.
const MOST: usize = 16;

/// The schema of a plugin's configuration, ready to be checked by. To make it so takes a hundred times as long as to
/// check by it.
#[derive(Debug)]
pub struct ConfigSchema(jsonschema::Validator);

impl ConfigSchema {
    /// # Errors
    /// [`PluginError::InvalidSchema`] when it is none.
    pub fn new(schema: &Value) -> Result<ConfigSchema, PluginError> {
        let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
        validator.map(ConfigSchema).map_err(|error| PluginError::InvalidSchema { detail: error.to_string() })
    }

    /// What is wrong with a configuration; empty when nothing is.
    pub fn check(&self, config: &Value) -> Vec<Diagnostic> {
        let diagnostic = |error: jsonschema::ValidationError<'_>| Diagnostic {
            severity: Severity::Error,
            code: "InvalidConfig".to_owned(),
            path: error.instance_path().to_string(),
            message: error.to_string(),
        };
        self.0.iter_errors(config).take(MOST).map(diagnostic).collect()
    }
}

/// What is wrong with `config` by `schema`; empty when nothing is.
///
/// # Errors
/// [`PluginError::InvalidSchema`] when the schema is none.
pub fn check_config(schema: &Value, config: &Value) -> Result<Vec<Diagnostic>, PluginError> {
    Ok(ConfigSchema::new(schema)?.check(config))
}
