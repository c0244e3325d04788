//! What stand-ins know of AWS: calls signed as the identity that the pod was given, against the emulator.
//!
//! It keeps to the APIs that AWS documents, and retries as AWS's SDKs do. It knows nothing of Kubernetes.

pub mod credentials;
pub mod query;
mod signature;
pub mod xml;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::emulator;
use credentials::{Session, Source};
use query::Query;
use xml::Element;

/// How often a call is made that AWS throttled or could not serve.
const ATTEMPTS: u32 = 4;
const TIMEOUT: Duration = Duration::from_secs(20);

/// An API of the Query protocol: signing name and version.
#[derive(Clone, Copy, Debug)]
pub struct Api(&'static str, &'static str);

pub const EC2: Api = Api("ec2", "2016-11-15");
pub const LOAD_BALANCERS: Api = Api("elasticloadbalancing", "2015-12-01");

/// An error that AWS answered with.
#[derive(Debug)]
pub struct Refusal {
    pub action: String,
    pub code: String,
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} failed: {}: {}", self.action, self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

/// AWS's error code, when the error is an answer of AWS.
pub fn code(error: &anyhow::Error) -> Option<&str> {
    error.downcast_ref::<Refusal>().map(|refusal| refusal.code.as_str())
}

/// Whether the identity lacks a right, or there is no identity: nothing that goes away by itself.
pub fn denied(error: &anyhow::Error) -> bool {
    const CODES: [&str; 9] = [
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "InvalidClientTokenId",
        "RequestExpired",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
        credentials::MISSING,
    ];
    code(error).is_some_and(|code| CODES.contains(&code))
}

/// A client with an identity.
#[derive(Debug)]
pub struct Aws {
    pub region: String,
    http: reqwest::Client,
    source: Source,
    session: Mutex<Option<Session>>,
}

impl Aws {
    /// A client for the region, whose credentials come from `source`.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(region: String, source: Source) -> Result<Self> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build().context("making the HTTP client")?;
        Ok(Self { region, http, source, session: Mutex::default() })
    }

    /// Makes sure that there are credentials.
    pub async fn identify(&self) -> Result<()> {
        self.session().await.map(drop)
    }

    /// Makes a call of the Query protocol and returns its result.
    pub async fn call(&self, api: Api, query: Query) -> Result<Element> {
        let action = query.action.clone();
        let body = query.encode(api.1);
        let text = self
            .send(api.0, &action, Method::POST, "/", "application/x-www-form-urlencoded; charset=utf-8", body)
            .await?;
        let response = xml::parse(&text).with_context(|| format!("reading the answer to {action}"))?;
        Ok(response.child(&format!("{action}Result")).cloned().unwrap_or(response))
    }

    /// Makes a call as often as it has pages; returns the entries of the list named `list`.
    pub async fn list(&self, api: Api, query: Query, list: &str) -> Result<Vec<Element>> {
        let mut entries = Vec::new();
        let mut next = None;
        loop {
            let page = match &next {
                Some((name, token)) => query.clone().with(*name, token),
                None => query.clone(),
            };
            let answer = self.call(api, page).await?;
            entries.extend(answer.child(list).into_iter().flat_map(|list| list.children.iter().cloned()));
            next = [("nextToken", "NextToken"), ("NextToken", "NextToken"), ("NextMarker", "Marker")]
                .into_iter()
                .find_map(|(found, asked)| {
                    Some((asked, answer.text(found).to_owned())).filter(|(_, token)| !token.is_empty())
                });
            if next.is_none() {
                return Ok(entries);
            }
        }
    }

    /// Makes a call of a REST API that speaks JSON; null when the answer is empty.
    pub async fn rest(
        &self,
        service: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let action = format!("{method} {path}");
        let body = body.map(Value::to_string).unwrap_or_default();
        let text = self.send(service, &action, method, path, "application/json", body).await?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("reading the answer to {action}"))
    }

    async fn session(&self) -> Result<Session> {
        let mut held = self.session.lock().await;
        if let Some(session) = held.as_ref().filter(|session| session.fresh()) {
            return Ok(session.clone());
        }
        let session = self.source.obtain(&self.http).await?;
        *held = Some(session.clone());
        Ok(session)
    }

    async fn send(
        &self,
        service: &str,
        action: &str,
        method: Method,
        path: &str,
        content: &str,
        body: String,
    ) -> Result<String> {
        let mut attempt = 1;
        loop {
            let session = self.session().await?;
            let headers = signature::sign(
                &session,
                &self.region,
                service,
                Timestamp::now(),
                method.as_str(),
                path,
                &body,
            );
            let mut request = self
                .http
                .request(method.clone(), format!("{}{path}", emulator::ENDPOINT))
                .header("content-type", content);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let (passes, error) = match answer(request.body(body.clone()), action).await {
                Ok(Ok(text)) => return Ok(text),
                Ok(Err((status, refusal))) => {
                    let throttled = matches!(
                        refusal.code.as_str(),
                        "Throttling" | "ThrottlingException" | "RequestLimitExceeded"
                    );
                    (status >= 500 || throttled, refusal.into())
                }
                Err(error) => (true, error),
            };
            if !passes || attempt == ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(200) * 2_u32.pow(attempt)).await;
            attempt += 1;
        }
    }
}

/// The body of an answer, or its status and error; the outer error is one of the connection.
pub async fn answer(
    builder: reqwest::RequestBuilder,
    action: &str,
) -> Result<Result<String, (u16, Refusal)>> {
    let response = builder.send().await.with_context(|| format!("calling {action}"))?;
    let status = response.status();
    let kind =
        response.headers().get("x-amzn-errortype").and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let text = response.text().await.with_context(|| format!("reading the answer to {action}"))?;
    if status.is_success() {
        return Ok(Ok(text));
    }
    let (code, message) = error(&text, kind.as_deref());
    let code = if code.is_empty() { status.as_u16().to_string() } else { code };
    Ok(Err((status.as_u16(), Refusal { action: action.to_owned(), code, message })))
}

/// Code and message of an error in any of the protocols.
fn error(text: &str, kind: Option<&str>) -> (String, String) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let field = |names: &[&str]| {
            names.iter().find_map(|name| value[*name].as_str()).unwrap_or_default().to_owned()
        };
        let code = kind.map_or_else(|| field(&["ErrorCode", "__type", "code"]), str::to_owned);
        let code =
            code.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default().to_owned();
        return (code, field(&["Message", "message"]));
    }
    let Ok(root) = xml::parse(text) else { return (String::new(), text.to_owned()) };
    let error = root.descend("Error").unwrap_or(&root);
    (error.text("Code").to_owned(), error.text("Message").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_every_protocol_are_understood() {
        let ec2 = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized.</Message></Error></Errors>\
            <RequestID>1</RequestID></Response>";
        assert_eq!(
            error(ec2, None),
            ("UnauthorizedOperation".to_owned(), "You are not authorized.".to_owned())
        );
        let query = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>";
        assert_eq!(error(query, None), ("AccessDenied".to_owned(), "no".to_owned()));
        let rest = r#"{"ErrorCode":"FileSystemNotFound","Message":"none"}"#;
        assert_eq!(error(rest, None), ("FileSystemNotFound".to_owned(), "none".to_owned()));
        assert_eq!(
            error("{\"Message\":\"no\"}", Some("AccessDeniedException:http://x")).0,
            "AccessDeniedException"
        );
    }

    #[test]
    fn a_missing_right_is_told_from_what_passes() {
        let refusal = |code: &str| {
            let refusal =
                Refusal { action: "CreateVolume".to_owned(), code: code.to_owned(), message: String::new() };
            anyhow::Error::from(refusal).context("making a volume")
        };
        assert!(denied(&refusal("UnauthorizedOperation")));
        assert!(denied(&refusal(credentials::MISSING)));
        assert!(!denied(&refusal("RequestLimitExceeded")));
        assert!(!denied(&anyhow::anyhow!("no route")));
    }
}
