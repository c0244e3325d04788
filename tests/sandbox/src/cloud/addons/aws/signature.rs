//! AWS Signature Version 4:
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.
//!
//! Pure. For requests whose path and body need no further encoding, to the emulator's address.

use k8s_openapi::jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::credentials::Session;
use crate::emulator;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The headers that make the request the session's. `path` may end in a query, sorted by name.
pub fn sign(
    session: &Session,
    region: &str,
    service: &str,
    at: Timestamp,
    method: &str,
    path: &str,
    body: &str,
) -> Vec<(&'static str, String)> {
    let time = at.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &time[..8];
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let names = "host;x-amz-date;x-amz-security-token";
    let headers =
        format!("host:{}\nx-amz-date:{time}\nx-amz-security-token:{}\n", emulator::ADDRESS, session.token);
    let request =
        format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{}", hexadecimal(&Sha256::digest(body)));
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hexadecimal(&Sha256::digest(request)));
    let first = format!("AWS4{}", session.secret).into_bytes();
    let key = [day, region, service, "aws4_request"]
        .iter()
        .fold(first, |key, part| mac(&key, part.as_bytes()).to_vec());
    let signature = hexadecimal(&mac(&key, text.as_bytes()));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        session.key
    );
    vec![
        ("authorization", authorization),
        ("x-amz-date", time),
        ("x-amz-security-token", session.token.clone()),
    ]
}

/// HMAC with SHA-256 (RFC 2104).
fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_is_that_of_the_rfc() {
        // RFC 4231, test case 2.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hexadecimal(&mac(b"Jefe", b"what do ya want for nothing?")), expected);
    }

    #[test]
    fn the_header_names_key_scope_and_headers() {
        let session = Session {
            key: "ASIAX".to_owned(),
            secret: "s".to_owned(),
            token: "t".to_owned(),
            expires: Timestamp::MAX,
        };
        let headers = sign(&session, "eu-west-1", "ec2", Timestamp::UNIX_EPOCH, "POST", "/", "Action=X");
        let (name, value) = &headers[0];
        assert_eq!(*name, "authorization");
        let start = "AWS4-HMAC-SHA256 Credential=ASIAX/19700101/eu-west-1/ec2/aws4_request, SignedHeaders=host;x-amz-date";
        assert!(value.starts_with(start), "{value}");
        let other = sign(&session, "eu-west-1", "ec2", Timestamp::UNIX_EPOCH, "POST", "/", "Action=Y");
        assert_ne!(other[0].1, *value);
    }
}
