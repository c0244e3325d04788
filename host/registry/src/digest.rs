//! Digests as registries write them: `sha256:` and 64 hexadecimal digits, lower case.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::text::shown;

/// The SHA-256 of some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    hex: String,
}

/// A text that is no such digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is no digest: it takes sha256: and 64 hexadecimal digits, lower case", shown(.0))]
pub struct DigestError(String);

impl Digest {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let hex = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hex }
    }

    /// The digits, without `sha256:`.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 && hex.bytes().all(is_digit) => Ok(Self { hex: hex.to_owned() }),
            _ => Err(DigestError(text.to_owned())),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn other_algorithms_lengths_cases_and_paths_are_refused() {
        let upper = EMPTY.to_uppercase();
        let longer = format!("{EMPTY}0");
        for text in ["", "sha256:", &EMPTY[..70], &longer, &upper, &EMPTY[7..], "sha512:00", "sha256:../../x"]
        {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
