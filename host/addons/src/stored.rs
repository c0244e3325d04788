//! The component that installed an add-on, and the plan that it installed, as they are stored in the workload
//! cluster beside the add-on's record: so that the add-on goes on being served by what installed it when the
//! operator brings another, and so that there is a way back. Both are compressed, and each is known by its
//! hash: whoever can write to the cluster can write over them.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use contract::AddOnPlan;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// Key of the component in the ConfigMap's `binaryData`.
const COMPONENT: &str = "component.wasm.gz";
/// Key of the plan.
const PLAN: &str = "plan.json.gz";
/// Bytes of a component that is stored; a larger one would not fit into a ConfigMap however it is compressed.
const LARGEST_COMPONENT: usize = 4 << 20;
/// Bytes of a plan as JSON; what a plugin may answer at most.
const LARGEST_PLAN: usize = 8 << 20;
/// Bytes of a ConfigMap's data (Kubernetes, `MaxSecretSize` and the same limit of ConfigMaps).
const LARGEST_CONFIG_MAP: usize = 1 << 20;

/// `binaryData` of the ConfigMap with both; `None` when they do not fit.
pub fn pack(component: &[u8], plan: &AddOnPlan) -> Option<BTreeMap<&'static str, Vec<u8>>> {
    let text = serde_json::to_vec(plan).ok()?;
    let (component, plan) = (compress(component)?, compress(&text)?);
    (component.len() + plan.len() < LARGEST_CONFIG_MAP)
        .then(|| BTreeMap::from([(COMPONENT, component), (PLAN, plan)]))
}

/// The component of this digest (`sha256:...`), if that is what is stored.
pub fn component(data: &BTreeMap<String, Vec<u8>>, digest: &str) -> Option<Vec<u8>> {
    let bytes = decompress(data.get(COMPONENT)?, LARGEST_COMPONENT)?;
    (component_digest(&bytes) == digest).then_some(bytes)
}

/// The plan with this digest (of [`plan_digest`]), if that is what is stored.
pub fn plan(data: &BTreeMap<String, Vec<u8>>, digest: &str) -> Option<AddOnPlan> {
    let text = decompress(data.get(PLAN)?, LARGEST_PLAN)?;
    (hex(&text) == digest).then(|| serde_json::from_slice(&text).ok()).flatten()
}

/// Hex SHA-256 of a plan as it is stored.
pub fn plan_digest(plan: &AddOnPlan) -> String {
    serde_json::to_vec(plan).map(|text| hex(&text)).unwrap_or_default()
}

/// `sha256:` and the hash of a component.
fn component_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// `None` when it is damaged, or more than `limit` bytes long: a few bytes can unfold to gigabytes.
fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut res = Vec::new();
    GzDecoder::new(bytes).take(limit as u64 + 1).read_to_end(&mut res).ok()?;
    (res.len() <= limit).then_some(res)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn a_plan() -> AddOnPlan {
        AddOnPlan { steps: vec![], removal: vec![], diagnostics: vec![], extra: json!({"a": 1}) }
    }

    fn stored(component: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let packed = pack(component, &a_plan()).expect("it fits");
        packed.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    #[test]
    fn what_was_stored_is_read_by_its_digest_alone() {
        let data = stored(b"component");
        assert_eq!(component(&data, &component_digest(b"component")), Some(b"component".to_vec()));
        assert_eq!(component(&data, &component_digest(b"other")), None);
        assert_eq!(plan(&data, &plan_digest(&a_plan())), Some(a_plan()));
        assert_eq!(plan(&data, "0"), None);
        assert_eq!(component(&BTreeMap::new(), &component_digest(b"component")), None);
    }

    #[test]
    fn what_somebody_damaged_is_not_read() {
        let mut data = stored(b"component");
        let bytes = data.get_mut(COMPONENT).expect("a component");
        bytes.truncate(bytes.len() / 2);
        assert_eq!(component(&data, &component_digest(b"component")), None);
    }

    #[test]
    fn a_few_bytes_that_unfold_to_many_are_not_unfolded() {
        let bomb = vec![0; LARGEST_COMPONENT + 1];
        let data = BTreeMap::from([(COMPONENT.to_owned(), compress(&bomb).expect("compressed"))]);
        assert!(data[COMPONENT].len() < 100_000);
        assert_eq!(component(&data, &component_digest(&bomb)), None);
    }

    #[test]
    fn what_does_not_fit_into_a_config_map_is_not_stored() {
        // Does not compress: each block is the hash of the one before.
        let mut block = Sha256::digest(b"seed");
        let mut noise = Vec::new();
        while noise.len() < LARGEST_CONFIG_MAP {
            noise.extend_from_slice(&block);
            block = Sha256::digest(block);
        }
        assert!(pack(&noise, &a_plan()).is_none());
    }
}
