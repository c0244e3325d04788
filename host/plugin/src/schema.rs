//! The JSON Schema that a plugin published for its configuration, and what is wrong with a configuration by
//! it. A schema is a program that somebody else wrote and the host runs: what it can take is bounded when it
//! is read, and no schema that could take more is used.
//!
//! No schema refers to another document or to itself, so each is a tree once its references are followed, and
//! a check looks at each value of the configuration with each value of that tree once at most. Patterns run
//! in time that grows with the text times their size, which is bounded too.

mod bounds;

use contract::{Diagnostic, Severity};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::error::PluginError;
use crate::text::shown;
use bounds::Size;

/// Diagnostics that one configuration gets at most, and bytes of each.
const MOST: usize = 16;
const LONGEST: usize = 1024;
/// Bytes of a compiled pattern, and of what is kept to run it fast.
const PATTERN: usize = 32 << 10;
/// Values of the schema times values of the configuration: about a second.
const MOST_WORK: usize = 20_000_000;
/// The same, to say where the configuration is wrong and not only that it is: each place takes memory.
const MOST_WORK_TO_SAY: usize = 500_000;
/// Patterns of the schema times bytes of text in the configuration: some seconds for the worst of them.
const MOST_TEXT: usize = 256 << 10;

/// A schema that was read, found harmless, and made ready. Checking may take a second or two at the worst: do
/// it where blocking is allowed.
#[derive(Debug)]
pub struct ConfigSchema {
    validator: Validator,
    size: Size,
}

impl ConfigSchema {
    /// Reads the schema of a descriptor.
    ///
    /// # Errors
    /// [`PluginError::SchemaRefused`] when it exceeds a bound or has a keyword without one,
    /// [`PluginError::InvalidSchema`] when it is no JSON Schema.
    pub fn read(schema: &Value) -> Result<ConfigSchema, PluginError> {
        let size = bounds::size(schema)
            .map_err(|detail| PluginError::SchemaRefused { detail: shown(&detail, LONGEST) })?;
        let patterns = PatternOptions::regex().size_limit(PATTERN).dfa_size_limit(PATTERN);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(false)
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| PluginError::InvalidSchema { detail: shown(&error.to_string(), LONGEST) })?;
        Ok(ConfigSchema { validator, size })
    }

    /// What is wrong with a configuration; empty when nothing is.
    pub fn check(&self, config: &Value) -> Vec<Diagnostic> {
        let (values, text) = bounds::values(config);
        let work = self.size.values.saturating_mul(values);
        if work > MOST_WORK || self.size.patterns.saturating_mul(text) > MOST_TEXT {
            let message = "is too large to be checked by the schema of the plugin";
            return vec![diagnostic("ConfigTooLarge", String::new(), message)];
        }
        if self.validator.is_valid(config) {
            return Vec::new();
        }
        if work > MOST_WORK_TO_SAY {
            let message = "does not fulfil the schema of the plugin, and is too large to say where";
            return vec![diagnostic("InvalidConfig", String::new(), message)];
        }
        self.validator
            .iter_errors(config)
            .take(MOST)
            .map(|error| {
                let path = shown(&error.instance_path().to_string(), LONGEST);
                diagnostic("InvalidConfig", path, &error.to_string())
            })
            .collect()
    }
}

fn diagnostic(code: &str, path: String, message: &str) -> Diagnostic {
    let message = shown(message, LONGEST);
    Diagnostic { severity: Severity::Error, code: code.to_owned(), path, message }
}
