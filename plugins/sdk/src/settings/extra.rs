//! Further arguments of a program that a user may set by their names: each plugin has a list of harmless
//! ones, and what each takes. Nothing else gets through, so no argument can take the place of what the plugin
//! itself decides.

use crate::Diagnostic;
use serde_json::{Map, Value};

/// A further argument, or environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// Name of the variable, or of the argument without its dashes.
    pub name: &'static str,
    /// Which values it may have.
    pub takes: ArgumentType,
}

/// What an argument takes.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentType {
    /// `true` or `false`.
    Switch,
    /// A whole number from the first to the last, both among them.
    Number(u32, u32),
    /// A duration such as `30s` or `1h30m`.
    Duration,
    /// One of these.
    Word(&'static [&'static str]),
    /// IPv4 ranges with commas between them.
    Ranges,
}

impl ArgumentType {
    fn takes(self, value: &str) -> bool {
        match self {
            ArgumentType::Switch => matches!(value, "true" | "false"),
            // Not `+5`, which is a number for Rust alone.
            ArgumentType::Number(least, most) => {
                value.bytes().all(|it| it.is_ascii_digit())
                    && value.parse().is_ok_and(|it: u32| (least..=most).contains(&it))
            }
            ArgumentType::Duration => is_duration(value),
            ArgumentType::Word(words) => words.contains(&value),
            ArgumentType::Ranges => value.split(',').all(super::is_ipv4_range),
        }
    }

    fn text(self) -> String {
        match self {
            ArgumentType::Switch => "true or false".to_owned(),
            ArgumentType::Number(least, most) => {
                ["a whole number from ", &least.to_string(), " to ", &most.to_string()].concat()
            }
            ArgumentType::Duration => "a duration, such as 30s or 1h30m".to_owned(),
            ArgumentType::Word(words) => ["one of ", &words.join(", ")].concat(),
            ArgumentType::Ranges => {
                "IPv4 ranges with commas between them, such as 10.0.0.0/16,10.1.0.0/16".to_owned()
            }
        }
    }
}

/// What is wrong with the arguments at `path` of the configuration, such as `/extraArgs`.
pub fn extra_problems(given: &Map<String, Value>, known: &[Extra], path: &str) -> Vec<Diagnostic> {
    let problem = |(name, value): (&String, &Value)| match known.iter().find(|it| it.name == name) {
        None => {
            let names: Vec<&str> = known.iter().map(|it| it.name).collect();
            let message = [name, " cannot be set here; what can is ", &names.join(", ")];
            Some(Diagnostic::error("UnknownArgument", path, message.concat()))
        }
        Some(it) if value.as_str().is_some_and(|value| it.takes.takes(value)) => None,
        Some(it) => {
            Some(Diagnostic::error("InvalidArgument", path, [name, " must be ", &it.takes.text()].concat()))
        }
    };
    given.iter().filter_map(problem).collect()
}

/// Those arguments that are known, as a program is given them: `--name=value`.
pub fn extra_args<'a>(
    given: &'a Map<String, Value>,
    known: &'a [Extra],
) -> impl Iterator<Item = String> + 'a {
    let is_known = |name: &str| known.iter().any(|it| it.name == name);
    given
        .iter()
        .filter(move |(name, _)| is_known(name))
        .map(|(name, value)| ["--", name, "=", value.as_str().unwrap_or_default()].concat())
}

/// Numbers with units, as Go reads them.
fn is_duration(value: &str) -> bool {
    let mut rest = value;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = &rest[digits..];
        // A unit that begins another comes after it.
        let Some(unit) = ["ms", "s", "m", "h"].into_iter().find(|it| after.starts_with(it)) else {
            return false;
        };
        if digits == 0 || digits > 6 {
            return false;
        }
        rest = &after[unit.len()..];
    }
    !value.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Extra] = &[
        Extra { name: "mode", takes: ArgumentType::Word(&["fast", "slow"]) },
        Extra { name: "period", takes: ArgumentType::Duration },
        Extra { name: "ranges", takes: ArgumentType::Ranges },
        Extra { name: "retries", takes: ArgumentType::Number(1, 10) },
        Extra { name: "verify", takes: ArgumentType::Switch },
    ];

    fn problems(name: &str, value: &str) -> Vec<String> {
        let given = Map::from_iter([(name.to_owned(), value.into())]);
        extra_problems(&given, KNOWN, "/extraArgs").into_iter().map(|it| it.message).collect()
    }

    #[test]
    fn what_is_known_is_taken_with_values_that_it_takes() {
        let good = [
            ("mode", "slow"),
            ("period", "1h30m"),
            ("period", "500ms"),
            ("ranges", "10.0.0.0/8,192.168.0.0/16"),
            ("retries", "10"),
        ];
        for (name, value) in good.into_iter().chain([("verify", "false")]) {
            assert_eq!(problems(name, value), [""; 0], "{name}={value}");
        }
    }

    #[test]
    fn a_program_is_given_what_is_known_of_it() {
        let given = [("retries", "3"), ("mode", "slow"), ("of-another", "1")]
            .map(|(name, value)| (name.to_owned(), value.into()));
        assert_eq!(
            extra_args(&Map::from_iter(given), KNOWN).collect::<Vec<_>>(),
            ["--mode=slow", "--retries=3"]
        );
    }

    #[test]
    fn everything_else_is_refused_and_says_what_can_be() {
        assert_eq!(
            problems("kubeconfig", "/etc/x"),
            ["kubeconfig cannot be set here; what can is mode, period, ranges, retries, verify"]
        );
        assert_eq!(problems("mode", "medium"), ["mode must be one of fast, slow"]);
        assert_eq!(problems("retries", "11"), ["retries must be a whole number from 1 to 10"]);
        let bad = [
            ("retries", "+5"),
            ("retries", ""),
            ("verify", "yes"),
            ("period", ""),
            ("period", "5"),
            ("period", "m"),
            ("period", "1d"),
        ];
        for (name, value) in bad.into_iter().chain([
            ("period", "1h --x"),
            ("ranges", ""),
            ("ranges", "10.0.0.0/8,"),
            ("ranges", "10.0.0.0"),
        ]) {
            assert_eq!(problems(name, value).len(), 1, "{name}={value}");
        }
    }
}
