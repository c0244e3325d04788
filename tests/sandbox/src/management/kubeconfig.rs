//! Kubeconfig files, written as JSON, which is YAML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::certificates::Pair;

/// Who a kubeconfig is for.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A client certificate and its key, as PEM.
    Certificate { certificate: String, key: String },
    /// A bearer token.
    Token(String),
}

impl From<Pair> for Credentials {
    fn from(pair: Pair) -> Self {
        Self::Certificate { certificate: pair.certificate, key: pair.key }
    }
}

/// A kubeconfig for the server at `server`, whose authority is `authority` (PEM).
pub fn kubeconfig(server: &str, authority: &str, credentials: &Credentials) -> String {
    let user = match credentials {
        Credentials::Certificate { certificate, key } => json!({
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        }),
        Credentials::Token(token) => json!({ "token": token }),
    };
    let cluster = json!({ "server": server, "certificate-authority-data": STANDARD.encode(authority) });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "sandbox", "cluster": cluster }],
        "users": [{ "name": "sandbox", "user": user }],
        "contexts": [{ "name": "sandbox", "context": { "cluster": "sandbox", "user": "sandbox" } }],
        "current-context": "sandbox",
    });
    format!("{config:#}\n")
}
