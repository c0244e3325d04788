//! Where a component is, as an administrator says it, and what of it is a registry and a path.

use std::fmt;

use crate::error::PullError;

/// A repository and what it takes to read from it.
#[derive(Clone, Default)]
pub struct Source {
    /// `registry.example.com[:port]/path`, without tag or digest.
    pub repository: String,
    /// The content of a Secret of type `kubernetes.io/dockerconfigjson`.
    pub docker_config: Option<Vec<u8>>,
    /// Certificates, as PEM, that are trusted besides those of the system.
    pub ca_bundle: Option<String>,
    /// Whether the registry is asked over HTTP without TLS.
    pub plain_http: bool,
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Source")
            .field("repository", &self.repository)
            .field("ca_bundle", &self.ca_bundle.is_some())
            .field("plain_http", &self.plain_http)
            .finish_non_exhaustive()
    }
}

/// Characters that a repository has at most, its registry included.
const LENGTH: usize = 255;

/// A repository's name in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Host, and port where there is one, as the administrator wrote it.
    pub registry: String,
    /// What follows the registry.
    pub path: String,
}

impl Name {
    /// Reads `registry/path`.
    pub fn parse(repository: &str) -> Result<Self, PullError> {
        let wrong = |problem| PullError::Repository { repository: repository.to_owned(), problem };
        let Some((registry, path)) = repository.split_once('/') else {
            return Err(wrong("has no path"));
        };
        if repository.contains("://") {
            return Err(wrong("has a scheme"));
        }
        if repository.len() > LENGTH {
            return Err(wrong("is too long"));
        }
        if path.contains('@') {
            return Err(wrong("has a digest, which is a field of its own"));
        }
        if path.contains(':') {
            return Err(wrong("has a tag, and a digest is what is pulled by"));
        }
        if !is_registry(registry) {
            return Err(wrong("begins with what is no host"));
        }
        if !path.split('/').all(is_path_component) {
            return Err(wrong(
                "has a path with other than lower case letters, digits and . _ - between them",
            ));
        }
        let path = if is_docker_hub(registry) && !path.contains('/') {
            format!("library/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self { registry: registry.to_owned(), path })
    }

    /// The host that answers for the registry: another one for Docker Hub.
    pub fn host(&self) -> &str {
        if is_docker_hub(&self.registry) { "registry-1.docker.io" } else { &self.registry }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.registry, self.path)
    }
}

/// Whether that is Docker Hub by one of its names.
pub fn is_docker_hub(registry: &str) -> bool {
    ["docker.io", "index.docker.io"].contains(&registry)
}

/// A host with a dot, a port, or the name `localhost`, so that the first part of a path is not taken for one.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0 && port.len() <= 5);
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(is_label),
    };
    is_host && port.is_none_or(is_port) && (text.contains(['.', ':']) || text == "localhost")
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !label.is_empty() && label.bytes().all(is_allowed) && !label.starts_with('-') && !label.ends_with('-')
}

/// Runs of letters and digits with one of `.`, `_`, `__` or any number of `-` between them.
fn is_path_component(component: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut separators = component.split(|character: char| character.is_ascii() && is_word(character as u8));
    let is_separator =
        |text: &str| ["", ".", "_", "__"].contains(&text) || text.bytes().all(|byte| byte == b'-');
    separators.all(is_separator)
        && component.bytes().next().is_some_and(is_word)
        && component.bytes().last().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(repository: &str) -> Result<(String, String), String> {
        match Name::parse(repository) {
            Ok(name) => Ok((name.host().to_owned(), name.path)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_repository_is_a_host_and_a_path() {
        for (repository, host, path) in [
            ("registry.example.com/plugins/tiny", "registry.example.com", "plugins/tiny"),
            ("localhost/a", "localhost", "a"),
            ("10.0.0.1:5000/a_b/c__d/e-----f/g.h", "10.0.0.1:5000", "a_b/c__d/e-----f/g.h"),
            ("[::1]:5000/a", "[::1]:5000", "a"),
            ("docker.io/tiny", "registry-1.docker.io", "library/tiny"),
        ] {
            assert_eq!(parse(repository), Ok((host.to_owned(), path.to_owned())), "{repository}");
        }
    }

    #[test]
    fn what_is_no_repository_is_refused_with_what_is_wrong() {
        for (repository, problem) in [
            ("tiny", "has no path"),
            ("plugins/tiny", "begins with what is no host"),
            ("https://registry.example.com/tiny", "has a scheme"),
            ("registry.example.com/tiny:v1", "has a tag"),
            ("registry.example.com/tiny@sha256:00", "has a digest"),
            ("registry.example.com/../tiny", "has a path"),
            ("registry.example.com/Tiny", "has a path"),
            ("registry.example.com/a//b", "has a path"),
            ("registry.example.com/a?b", "has a path"),
            ("registry.example.com/\u{e4}", "has a path"),
            ("user@registry.example.com/a", "begins with what is no host"),
            ("registry.example.com:0/a", "begins with what is no host"),
            ("registry.example.com\\@other.example.com/a", "begins with what is no host"),
        ] {
            let error = parse(repository).expect_err(repository);
            assert!(error.contains(problem), "{repository}: {error}");
        }
        let long = format!("registry.example.com/{}", "a".repeat(300));
        assert!(parse(&long).expect_err("it is long").contains("is too long"));
    }

    #[test]
    fn a_source_shows_nothing_of_its_credentials() {
        let source = Source { docker_config: Some(b"hunter2".to_vec()), ..Source::default() };
        assert!(!format!("{source:?}").contains("hunter2") && !format!("{source:?}").contains("104"));
    }
}
