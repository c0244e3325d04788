//! The entry of a docker config that is for a repository, picked as the kubelet picks it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;

use crate::error::PullError;
use crate::source::{Name, is_docker_hub};

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// The value of an `Authorization` header.
    pub fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
}

/// The credentials for a repository; none where no entry is for it.
///
/// # Errors
/// When the config, or the entry that is for it, cannot be read. The message holds nothing of either.
pub fn find(config: &[u8], name: &Name) -> Result<Option<Credentials>, PullError> {
    let wrong = |problem: String| PullError::PullSecret { problem };
    let config: DockerConfig = serde_json::from_slice(config).map_err(|error| {
        wrong(format!("its .dockerconfigjson is not what `docker login` writes (line {})", error.line()))
    })?;
    let mut places: Vec<(Place, &Entry)> =
        config.auths.iter().map(|(key, entry)| (Place::parse(key), entry)).collect();
    // The longest path first, and of the same path a host that is written out before a pattern.
    places.sort_by_key(|(place, _)| (std::cmp::Reverse(place.path.len()), place.host.contains(['*', '?'])));
    let hub = Place::parse("index.docker.io");
    let found = places
        .iter()
        .find(|(place, _)| place.is_for(name))
        .or_else(|| places.iter().find(|(place, _)| is_docker_hub(&name.registry) && *place == hub));
    found.map(|(place, entry)| entry.credentials(&place.host).map_err(wrong)).transpose()
}

impl Entry {
    fn credentials(&self, host: &str) -> Result<Credentials, String> {
        if self.auth.is_empty() {
            return match self.username.is_empty() {
                false => Ok(Credentials { user: self.username.clone(), password: self.password.clone() }),
                true => Err(format!("its entry for {host} has neither auth nor username and password")),
            };
        }
        let auth = self.auth.trim();
        let engine = if auth.ends_with('=') { STANDARD } else { STANDARD_NO_PAD };
        let text = engine.decode(auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match text.as_deref().and_then(|text| text.split_once(':')) {
            Some((user, password)) => {
                Ok(Credentials { user: user.to_owned(), password: password.to_owned() })
            }
            None => Err(format!("auth of its entry for {host} is no base64 of user:password")),
        }
    }
}

/// What an entry is for: a host, which may be a pattern, and the beginning of a path.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    host: String,
    path: String,
}

impl Place {
    fn parse(key: &str) -> Self {
        let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
        let (host, path) = key.find('/').map_or((key, ""), |slash| key.split_at(slash));
        let path = if path.starts_with("/v1/") || path.starts_with("/v2/") { &path[3..] } else { path };
        Self { host: host.to_owned(), path: path.strip_suffix('/').unwrap_or(path).to_owned() }
    }

    fn is_for(&self, name: &Name) -> bool {
        let split = |host: &str| match host.rsplit_once(':') {
            Some((host, port)) => (host.to_owned(), port.to_owned()),
            None => (host.to_owned(), String::new()),
        };
        let ((pattern, pattern_port), (host, port)) = (split(&self.host), split(&name.registry));
        let parts = |host: &str| host.split('.').map(str::to_owned).collect::<Vec<_>>();
        let (patterns, labels) = (parts(&pattern), parts(&host));
        pattern_port == port
            && patterns.len() == labels.len()
            && patterns
                .iter()
                .zip(&labels)
                .all(|(pattern, label)| matches(pattern.as_bytes(), label.as_bytes()))
            && format!("/{}", name.path).starts_with(&self.path)
    }
}

/// Whether a label fits a pattern of `*` (any characters) and `?` (one), in time that no pattern makes long.
fn matches(pattern: &[u8], label: &[u8]) -> bool {
    // Which beginnings of the label the pattern so far fits.
    let mut fits: Vec<bool> = (0..=label.len()).map(|length| length == 0).collect();
    for symbol in pattern {
        let before = fits.clone();
        for length in 0..=label.len() {
            let one_less = length > 0 && before[length - 1];
            fits[length] = match symbol {
                b'*' => before[length] || (length > 0 && fits[length - 1]),
                b'?' => one_less,
                symbol => one_less && label[length - 1] == *symbol,
            };
        }
    }
    fits[label.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(config: &str, repository: &str) -> Option<String> {
        let name = Name::parse(repository).expect("a repository");
        find(config.as_bytes(), &name).expect("a config").map(|it| it.user)
    }

    #[test]
    fn the_entry_of_the_longest_path_is_used_and_none_of_another_host() {
        let config = r#"{"auths": {
            "registry.example.com": {"username": "all", "password": "p"},
            "https://registry.example.com/v2/team/plugins/": {"username": "plugins", "password": "p"},
            "registry.example.com/team": {"username": "team", "password": "p"},
            "registry.example.com:5000": {"username": "port", "password": "p"},
            "*.example.org": {"username": "pattern", "password": "p"},
            "r?gi*t*y.example.net": {"username": "symbols", "password": "p"},
            "eu.example.org": {"username": "exact", "password": "p"}
        }}"#;
        for (repository, expected) in [
            ("registry.example.com/other/tiny", Some("all")),
            ("registry.example.com/team/tiny", Some("team")),
            ("registry.example.com/team/plugins/tiny", Some("plugins")),
            ("registry.example.com:5000/team/tiny", Some("port")),
            ("registry.example.com:5001/team/tiny", None),
            ("us.example.org/tiny", Some("pattern")),
            ("eu.example.org/tiny", Some("exact")),
            ("a.eu.example.org/tiny", None),
            ("registry.example.net/tiny", Some("symbols")),
            ("rgistry.example.net/tiny", None),
            ("example.com/tiny", None),
            ("evilregistry.example.com/tiny", None),
        ] {
            assert_eq!(user(config, repository).as_deref(), expected, "{repository}");
        }
    }

    #[test]
    fn docker_hub_has_its_entry_under_its_old_name() {
        let config = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "dXNlcjpwYTpzcw=="}}}"#;
        assert_eq!(user(config, "docker.io/team/tiny").as_deref(), Some("user"));
        assert_eq!(user(config, "registry.example.com/tiny"), None);
    }

    #[test]
    fn a_password_may_hold_colons_and_padding_may_lack() {
        let name = Name::parse("a.example/b").expect("a repository");
        for auth in ["dXNlcjpwYTpzcw==", "dXNlcjpwYTpzcw"] {
            let config = format!(r#"{{"auths": {{"a.example": {{"auth": "{auth}"}}}}}}"#);
            let found = find(config.as_bytes(), &name).expect("a config").expect("an entry");
            assert_eq!((found.user.as_str(), found.password.as_str()), ("user", "pa:ss"));
            assert_eq!(found.basic(), "Basic dXNlcjpwYTpzcw==");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_without_its_content() {
        let name = Name::parse("a.example/b").expect("a repository");
        for (config, expected) in [
            ("hunter2", "not what `docker login` writes"),
            (r#"{"auths": {"a.example": {"auth": "hunter2!"}}}"#, "no base64 of user:password"),
            (r#"{"auths": {"a.example": {"auth": "aHVudGVyMg=="}}}"#, "no base64 of user:password"),
            (r#"{"auths": {"a.example": {"password": "hunter2"}}}"#, "has neither auth nor username"),
        ] {
            let Err(error) = find(config.as_bytes(), &name) else { panic!("{config}") };
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
