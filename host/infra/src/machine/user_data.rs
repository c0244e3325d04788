//! How bootstrap data reaches an instance: in AWS Secrets Manager, in parts, with user data that only
//! fetches, deletes and runs it; or in the user data itself when the spec says so. It never logs any of it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::token::derive;
use model::{Invalid, Sensitive};

/// Bytes of one secret; Secrets Manager takes 65,536, and its base64 form in an answer is larger.
pub const PART_SIZE: usize = 7000;
/// Bytes of user data that EC2 takes, before base64.
pub const LARGEST_USER_DATA: usize = 16 * 1024;
/// How much of a prefix is a nonce.
const NONCE_DIGITS: usize = 16;
/// Prefix of the names of secrets, which the nodes' IAM policy names.
const PREFIX: &str = "aws.cluster.x-k8s.io/";

/// Prefix of the secrets of one attempt to create a machine: a nonce, of which the first half counts, and
/// what proves whose they are. The object that they are written down on can be written by others, so its id
/// and its namespace/name go into the second half: no other machine has that.
pub(super) fn secret_prefix(nonce: &str, id: &str, machine: &str) -> String {
    let nonce = nonce.get(..NONCE_DIGITS).unwrap_or_default();
    let all = format!("{nonce}{}", derive(&format!("{id}/{machine}"), nonce));
    let digit = |from: usize, to: usize| all.get(from..to).unwrap_or_default();
    format!("{PREFIX}{}-{}-{}-{}-{}", digit(0, 8), digit(8, 12), digit(12, 16), digit(16, 20), digit(20, 32))
}

/// Whether a prefix was made for a machine of this id and namespace/name.
pub(super) fn is_prefix_of(prefix: &str, id: &str, machine: &str) -> bool {
    let nonce: String = prefix
        .strip_prefix(PREFIX)
        .unwrap_or_default()
        .chars()
        .filter(|it| *it != '-')
        .take(NONCE_DIGITS)
        .collect();
    !id.is_empty() && prefix == secret_prefix(&nonce, id, machine)
}

/// Bootstrap data compressed and cut into parts.
pub(super) fn parts(bootstrap: &[u8]) -> Vec<Sensitive> {
    compress(bootstrap).chunks(PART_SIZE).map(|part| Sensitive(part.to_vec())).collect()
}

/// User data that holds the bootstrap data itself.
///
/// # Errors
/// It is larger than EC2 takes.
pub(super) fn whole(bootstrap: &[u8], uncompressed: bool) -> Result<Sensitive, Invalid> {
    let data = if uncompressed { bootstrap.to_vec() } else { compress(bootstrap) };
    if data.len() <= LARGEST_USER_DATA {
        return Ok(Sensitive(data));
    }
    let (field, instead) = if uncompressed {
        ("spec.uncompressedUserData", "compressed")
    } else {
        ("spec.cloudInit.insecureSkipSecretsManager", "kept in AWS Secrets Manager")
    };
    let message = format!(
        "bootstrap data is {} bytes, and EC2 takes {LARGEST_USER_DATA} as user data; set this to false, so \
         that it is {instead}",
        data.len(),
    );
    Err(Invalid::new(field, message))
}

fn compress(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(data);
    encoder.finish().unwrap_or_default()
}

/// User data that fetches the parts, deletes them, and runs what they hold. It is the same for the same
/// secrets.
pub(super) fn fetching(prefix: &str, count: usize, region: &str) -> Sensitive {
    let last = count.saturating_sub(1);
    let script =
        SCRIPT.replace("@PREFIX@", prefix).replace("@LAST@", &last.to_string()).replace("@REGION@", region);
    let boundary = "==cluster-operator-user-data==";
    let data = format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n\
         --{boundary}\nContent-Type: text/cloud-boothook; charset=\"us-ascii\"\nMIME-Version: 1.0\n\
         Content-Transfer-Encoding: 7bit\nContent-Disposition: attachment; filename=\"fetch.sh\"\n\n{script}\n\
         --{boundary}\nContent-Type: text/x-include-url; charset=\"us-ascii\"\nMIME-Version: 1.0\n\
         Content-Transfer-Encoding: 7bit\nContent-Disposition: attachment; filename=\"include.txt\"\n\n\
         file:///etc/secret-userdata.txt\n--{boundary}--\n"
    );
    Sensitive(data.into_bytes())
}

/// Runs on every boot before anything else of cloud-init. The first time it leaves the bootstrap data in a
/// file and starts cloud-init again, which then reads the file as the second part of the user data.
const SCRIPT: &str = r#"#cloud-boothook
#!/bin/bash
set -o nounset -o pipefail
umask 0077

readonly target=/etc/secret-userdata.txt
readonly prefix="@PREFIX@"
readonly last=@LAST@
export AWS_DEFAULT_REGION="@REGION@"

say() { echo "bootstrap data: $*" | tee /dev/kmsg 2>/dev/null || true; }
if [ -f "${target}" ]; then
  say "already there"
  exit 0
fi

# New instances are not known to IAM everywhere at once, and the API is throttled: try for about ten minutes.
patiently() {
  local pause=1
  for _ in $(seq 1 40); do
    "$@" && return 0
    sleep "${pause}"
    pause=$((pause < 15 ? pause + 1 : 15))
  done
  return 1
}

fetch() {
  aws secretsmanager get-secret-value --secret-id "$1" --output text --query SecretBinary | base64 --decode >"$2"
}
remove() {
  local answer
  answer="$(aws secretsmanager delete-secret --force-delete-without-recovery --secret-id "$1" 2>&1)" && return 0
  case "${answer}" in *ResourceNotFoundException*) return 0 ;; esac
  return 1
}

work="$(mktemp -d)" || exit 1
trap 'rm -rf "${work}"' EXIT
for n in $(seq 0 "${last}"); do
  if ! patiently fetch "${prefix}-${n}" "${work}/part"; then
    say "cannot read secret ${prefix}-${n}"
    exit 1
  fi
  cat "${work}/part" >>"${work}/whole"
done
for n in $(seq 0 "${last}"); do
  patiently remove "${prefix}-${n}" || say "cannot delete secret ${prefix}-${n}"
done
if ! gzip --decompress --stdout <"${work}/whole" >"${work}/plain"; then
  say "the parts do not fit together"
  exit 1
fi
mv "${work}/plain" "${target}"
say "fetched"

# cloud-init has read the user data before this script: let it begin again, now with the file in place.
systemctl restart cloud-init || say "cannot restart cloud-init"
"#;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn the_parts_hold_the_bootstrap_data_and_fit_into_secrets() {
        let bootstrap = noise(30_000);
        let parts = parts(&bootstrap);
        assert_eq!(parts.len(), 5);
        assert!(parts.iter().all(|it| it.0.len() <= PART_SIZE));
        let whole: Vec<u8> = parts.into_iter().flat_map(|it| it.0).collect();
        let mut plain = Vec::new();
        GzDecoder::new(whole.as_slice()).read_to_end(&mut plain).expect("gzip");
        assert_eq!(plain, bootstrap);
    }

    #[test]
    fn bootstrap_data_that_ec2_does_not_take_is_refused_with_advice() {
        assert!(whole(&noise(16_384), true).is_ok());
        let message = |uncompressed| whole(&noise(17_000), uncompressed).expect_err("too large").to_string();
        assert!(
            message(true).starts_with("spec.uncompressedUserData: ") && message(true).contains("compressed")
        );
        assert!(
            message(false).starts_with("spec.cloudInit.insecureSkipSecretsManager: ")
                && message(false).contains("Secrets Manager")
        );
    }

    #[test]
    fn a_prefix_says_of_which_machine_it_is() {
        let prefix = secret_prefix("0123456789abcdef0123456789abcdef", "id", "default/worker-0");
        assert!(is_prefix_of(&prefix, "id", "default/worker-0"));
        for (id, machine) in [
            ("id", "default/worker-1"),
            ("id", "other/worker-0"),
            ("other", "default/worker-0"),
            ("", "default/worker-0"),
        ] {
            assert!(!is_prefix_of(&prefix, id, machine), "{id} {machine}");
        }
        let by_another_provider = "aws.cluster.x-k8s.io/01234567-89ab-cdef-0123-456789abcdef";
        assert!(
            !is_prefix_of(by_another_provider, "id", "default/worker-0")
                && !is_prefix_of("", "id", "default/worker-0")
        );
    }

    #[test]
    fn user_data_that_fetches_names_every_part_and_fits() {
        let prefix = secret_prefix("0123456789abcdef0123456789abcdef", "id", "default/worker-0");
        assert!(
            prefix.starts_with("aws.cluster.x-k8s.io/01234567-89ab-cdef-")
                && prefix.len() == PREFIX.len() + 36,
            "{prefix}"
        );
        let text = String::from_utf8(fetching(&prefix, 3, "eu-west-1").0).expect("text");
        assert!(text.len() < LARGEST_USER_DATA / 2);
        assert!(
            text.contains("readonly last=2\n")
                && text.contains(&prefix)
                && text.contains("AWS_DEFAULT_REGION=\"eu-west-1\"")
        );
        assert!(
            ["@PREFIX@", "@LAST@", "@REGION@"].iter().all(|it| !text.contains(it)),
            "everything is filled in"
        );
        assert_eq!(text, String::from_utf8(fetching(&prefix, 3, "eu-west-1").0).expect("text"));
    }
}
