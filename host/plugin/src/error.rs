//! Everything that can go wrong with a plugin, each with the reason that a condition shows.

use crate::text::shown;
use std::time::Duration;

/// Bytes of what others say about a component, at most.
const DETAIL: usize = 1024;
/// Imports that are named when there are too many.
const MOST_IMPORTS: usize = 40;

/// Why a plugin could not be loaded or did not answer. The host goes on in every case.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// Not a component, or not a valid one.
    #[error("not a valid WebAssembly component: {detail}")]
    InvalidComponent { detail: String },
    /// More bytes than the host compiles.
    #[error("the component has {size} bytes, more than the {limit} allowed")]
    ComponentTooLarge { size: usize, limit: usize },
    /// It wants more from the host than a log.
    #[error("imports that no plugin gets: {}", .imports.join(", "))]
    ImportsRefused { imports: Vec<String> },
    /// It is a component, but of another contract.
    #[error("does not speak {}: {detail}", contract::CONTRACT)]
    Contract { detail: String },
    /// It gave up.
    #[error("{function} trapped: {trap}{}", last_words(.log))]
    Trap { function: &'static str, trap: String, log: Option<String> },
    /// It went too deep.
    #[error("{function} exhausted its stack")]
    StackOverflow { function: &'static str },
    /// It computed too much.
    #[error("{function} used up its {fuel} units of fuel")]
    OutOfFuel { function: &'static str, fuel: u64 },
    /// It had not answered when its time was over, whatever it did.
    #[error("{function} ran too long: there was no answer within {limit:?}")]
    RanTooLong { function: &'static str, limit: Duration },
    /// It wanted too much memory.
    #[error("{function} wanted more than the {limit} bytes of memory allowed")]
    OutOfMemory { function: &'static str, limit: usize },
    /// It had too much to say.
    #[error("{function} wrote more to the log than the {messages} messages or {bytes} bytes allowed")]
    LogFlood { function: &'static str, messages: usize, bytes: usize },
    /// Its answer is too large.
    #[error("the answer of {function} is larger than the {limit} bytes allowed")]
    PlanTooLarge { function: &'static str, limit: usize },
    /// Its answer is small enough, but would not be once it was read.
    #[error("the answer of {function} holds more than the {limit} JSON values allowed")]
    TooManyValues { function: &'static str, limit: usize },
    /// Its answer is not what the contract says, before anything was read.
    #[error("the answer of {function} cannot be read: {detail}")]
    MalformedAnswer { function: &'static str, detail: String },
    /// Text that should be JSON is not.
    #[error("{field} in the answer of {function} is not {expected}")]
    InvalidJson {
        function: &'static str,
        field: String,
        expected: &'static str,
        source: Option<serde_json::Error>,
    },
    /// The answer is readable, but no plan.
    #[error("{detail}")]
    InvalidPlan { detail: String },
    /// It said two different things about itself.
    #[error("describe answered differently when it was asked again: {field} differs")]
    Inconsistent { field: &'static str },
    /// Compiling it needs too much memory.
    #[error("compiling it needs more than the {limit} bytes of memory allowed")]
    CompilerOutOfMemory { limit: u64 },
    /// Compiling it takes too long.
    #[error("compiling it took longer than the {limit:?} allowed")]
    CompilerRanTooLong { limit: Duration },
    /// The compiler ended in the midst of it.
    #[error("the compiler crashed ({status}){}", last_words(.words))]
    CompilerCrashed { status: String, words: Option<String> },
    /// The compiler answered with something that is no code of this host.
    #[error("what the compiler made of it cannot be read: {detail}")]
    CompilerAnswer { detail: String },
    /// Its code is too large.
    #[error("it is larger than the {limit} bytes allowed once it is compiled")]
    CodeTooLarge { limit: usize },
    /// The schema of its configuration could take too much to read or to check by.
    #[error("the schema of the configuration is refused: {detail}")]
    SchemaRefused { detail: String },
    /// The schema of its configuration is none.
    #[error("the schema of the configuration is not a JSON Schema: {detail}")]
    InvalidSchema { detail: String },
    /// Not the plugin's fault.
    #[error("the plugin host failed: {detail}")]
    Host { detail: String },
}

fn last_words(log: &Option<String>) -> String {
    log.as_ref().map(|line| format!(" ({line})")).unwrap_or_default()
}

impl PluginError {
    /// It is no component; why, in words that may be the component's own.
    pub(crate) fn invalid_component(detail: &str) -> PluginError {
        PluginError::InvalidComponent { detail: shown(detail, DETAIL) }
    }

    /// It is of another contract; how, likewise.
    pub(crate) fn contract(detail: &str) -> PluginError {
        PluginError::Contract { detail: shown(detail, DETAIL) }
    }

    /// What it imports; some of it, when it is a lot.
    pub(crate) fn imports_refused(imports: &[String]) -> PluginError {
        let mut named: Vec<String> =
            imports.iter().take(MOST_IMPORTS).map(|name| shown(name, DETAIL / 8)).collect();
        if imports.len() > MOST_IMPORTS {
            named.push(format!("and {} more", imports.len() - MOST_IMPORTS));
        }
        PluginError::ImportsRefused { imports: named }
    }

    /// Its answer cannot be read; why, in words that may be its own.
    pub(crate) fn malformed_answer(function: &'static str, detail: &str) -> PluginError {
        PluginError::MalformedAnswer { function, detail: shown(detail, DETAIL) }
    }

    /// How the compiler ended, and what it said last.
    pub(crate) fn compiler_crashed(status: &str, words: &str) -> PluginError {
        let words = Some(shown(words, DETAIL)).filter(|words| !words.is_empty());
        PluginError::CompilerCrashed { status: status.to_owned(), words }
    }

    /// Why its code cannot be loaded.
    pub(crate) fn compiler_answer(detail: &str) -> PluginError {
        PluginError::CompilerAnswer { detail: shown(detail, DETAIL) }
    }

    /// The reason for a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            PluginError::InvalidComponent { .. } => "InvalidComponent",
            PluginError::ComponentTooLarge { .. } => "ComponentTooLarge",
            PluginError::ImportsRefused { .. } => "ImportsRefused",
            PluginError::Contract { .. } => "ContractUnsupported",
            PluginError::Trap { .. } => "PluginTrapped",
            PluginError::StackOverflow { .. } => "PluginStackOverflow",
            PluginError::OutOfFuel { .. } => "PluginOutOfFuel",
            PluginError::RanTooLong { .. } => "PluginRanTooLong",
            PluginError::OutOfMemory { .. } => "PluginOutOfMemory",
            PluginError::LogFlood { .. } => "PluginLogFlood",
            PluginError::PlanTooLarge { .. } => "PlanTooLarge",
            PluginError::TooManyValues { .. } => "PlanTooManyValues",
            PluginError::MalformedAnswer { .. } => "PluginMalformedAnswer",
            PluginError::InvalidJson { .. } => "PluginInvalidJSON",
            PluginError::InvalidPlan { .. } => "InvalidPlan",
            PluginError::Inconsistent { .. } => "PluginInconsistent",
            PluginError::CompilerOutOfMemory { .. } => "PluginCompilerOutOfMemory",
            PluginError::CompilerRanTooLong { .. } => "PluginCompilerRanTooLong",
            PluginError::CompilerCrashed { .. } => "PluginCompilerCrashed",
            PluginError::CompilerAnswer { .. } => "PluginCompilerAnswerUnreadable",
            PluginError::CodeTooLarge { .. } => "PluginCodeTooLarge",
            PluginError::SchemaRefused { .. } => "ConfigSchemaRefused",
            PluginError::InvalidSchema { .. } => "InvalidConfigSchema",
            PluginError::Host { .. } => "PluginHostFailed",
        }
    }

    /// Whether the same call can be expected to end the same way. All but failures of the host itself, and
    /// what the clock or the machine ended, are deterministic.
    pub fn is_permanent(&self) -> bool {
        !matches!(
            self,
            PluginError::Host { .. }
                | PluginError::RanTooLong { .. }
                | PluginError::CompilerRanTooLong { .. }
                | PluginError::CompilerCrashed { .. }
                | PluginError::CompilerAnswer { .. }
        )
    }
}
