//! Who we are to a registry: what it asks for when it answers 401, and the token that its token service gives.

use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http_auth::ChallengeRef;
use serde::Deserialize;
use url::Url;

use crate::credentials::Credentials;
use crate::error::PullError;
use crate::source::Name;
use crate::text::shown;
use crate::transport::{Transport, host};

/// Bytes of a token service's answer.
const TOKEN: u64 = 256 << 10;

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    /// A token of the service at `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

/// The `Authorization` that fits what a registry asked for in the headers of its 401; none where it asks for a user
/// and we have none.
///
/// # Errors
/// When it asks for what we cannot give, or the token service does not give a token.
pub async fn authorize(
    transport: &Transport,
    name: &Name,
    credentials: Option<&Credentials>,
    headers: &HeaderMap,
) -> Result<Option<HeaderValue>, PullError> {
    match challenge(headers) {
        Some(Challenge::Basic) => Ok(credentials.map(basic).transpose()?),
        Some(Challenge::Bearer { realm, service }) => {
            let url = token_url(name, &realm, service.as_deref())?;
            token(transport, name, credentials, &url).await.map(Some)
        }
        None => Err(PullError::Answer {
            registry: name.host().to_owned(),
            what: "request for credentials that is known here",
            why: "401 without a challenge of the scheme Basic or Bearer".to_owned(),
        }),
    }
}

/// The challenge to answer: a token where one is asked for, since that is shorter lived.
fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let mut basic = None;
    for challenge in texts.filter_map(|text| http_auth::parse_challenges(text).ok()).flatten() {
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        } else if challenge.scheme.eq_ignore_ascii_case("bearer")
            && let Some(realm) = parameter(&challenge, "realm")
        {
            return Some(Challenge::Bearer { realm, service: parameter(&challenge, "service") });
        }
    }
    basic
}

fn parameter(challenge: &ChallengeRef<'_>, name: &str) -> Option<String> {
    let found = challenge.params.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.to_unescaped())
}

/// Where a token to pull from the repository, and for nothing else, is asked for.
fn token_url(name: &Name, realm: &str, service: Option<&str>) -> Result<Url, PullError> {
    let mut url = Url::parse(realm).map_err(|_| PullError::Answer {
        registry: name.host().to_owned(),
        what: "URL of a token service",
        why: shown(realm),
    })?;
    if let Some(service) = service {
        url.query_pairs_mut().append_pair("service", service);
    }
    url.query_pairs_mut().append_pair("scope", &format!("repository:{}:pull", name.path));
    Ok(url)
}

async fn token(
    transport: &Transport,
    name: &Name,
    credentials: Option<&Credentials>,
    url: &Url,
) -> Result<HeaderValue, PullError> {
    if !transport.is_allowed(url) {
        return Err(PullError::Redirect {
            registry: name.host().to_owned(),
            why: format!("a token service at {} without TLS", host(url)),
        });
    }
    let authorization = credentials.map(basic).transpose()?;
    let answer = transport.get(url, "application/json", authorization.as_ref()).await?;
    let registry = answer.host.clone();
    match answer.status.as_u16() {
        200 => {}
        400 | 401 | 403 | 404 => {
            return Err(PullError::Unauthorized {
                registry,
                repository: name.to_string(),
                with_credentials: credentials.is_some(),
            });
        }
        status => {
            return Err(PullError::Unreachable {
                registry,
                why: format!("no token but HTTP status {status}"),
            });
        }
    }
    let bytes = transport.read(answer, "the token", TOKEN).await?;
    let wrong =
        |why: &str| PullError::Answer { registry: registry.clone(), what: "token", why: why.to_owned() };
    let answer: TokenAnswer = serde_json::from_slice(&bytes).map_err(|_| wrong("other JSON, or none"))?;
    let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| wrong("an answer without token and access_token"))?;
    sensitive(&format!("Bearer {token}")).ok_or_else(|| wrong("characters that no header can have"))
}

fn basic(credentials: &Credentials) -> Result<HeaderValue, PullError> {
    sensitive(&credentials.basic())
        .ok_or_else(|| PullError::PullSecret { problem: "its user or password is too long".to_owned() })
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(values: &[&'static str]) -> Option<Challenge> {
        let headers = values.iter().map(|value| (WWW_AUTHENTICATE, HeaderValue::from_static(value)));
        challenge(&headers.collect())
    }

    #[test]
    fn a_token_is_preferred_to_a_password_wherever_it_stands() {
        let bearer = Some(Challenge::Bearer {
            realm: "https://auth.example.com/token".to_owned(),
            service: Some("a \"b\"".to_owned()),
        });
        let text = r#"Bearer realm="https://auth.example.com/token",service="a \"b\"",scope="x:y:push""#;
        assert_eq!(asked(&["Basic realm=\"x\"", text]), bearer);
        assert_eq!(asked(&[text, "Basic realm=\"x\""]), bearer);
        assert_eq!(asked(&["basic realm=\"x\""]), Some(Challenge::Basic));
        assert_eq!(asked(&["Negotiate", "Bearer error=\"x\"", "\"", ""]), None);
    }

    #[test]
    fn a_token_is_asked_for_to_pull_and_for_nothing_else() {
        let name = Name::parse("a.example/team/tiny").expect("a repository");
        let url = token_url(&name, "https://b.example/token?tenant=1", Some("c&scope=x")).expect("a URL");
        assert_eq!(
            url.as_str(),
            "https://b.example/token?tenant=1&service=c%26scope%3Dx&scope=repository%3Ateam%2Ftiny%3Apull"
        );
        assert!(token_url(&name, "nonsense", None).is_err());
    }
}
