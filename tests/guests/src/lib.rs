//! Components of plugins for tests.

/// A plugin whose configuration says what it answers, as `scripted/src/lib.rs` has it.
pub const SCRIPTED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scripted.wasm"));

/// The same component with other text of the same length in it: another version, another demand.
///
/// # Panics
/// The text is not in it, or the other is not as long.
pub fn scripted_with(changes: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = SCRIPTED.to_vec();
    for (from, to) in changes {
        assert_eq!(from.len(), to.len(), "{from} and {to} are not of one length");
        let places: Vec<usize> = bytes
            .windows(from.len())
            .enumerate()
            .filter(|(_, it)| *it == from.as_bytes())
            .map(|it| it.0)
            .collect();
        assert!(!places.is_empty(), "the component has no {from}");
        for place in places {
            bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}
