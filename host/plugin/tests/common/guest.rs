//! Guests that answer with what a test says: the answers are laid out in their memory beforehand, as the
//! canonical ABI has them.

use super::{WIT, component_exporting};

/// Where the answers begin in the memory of a guest.
const START: u32 = 65536;

/// A step as a guest answers it, well-formed or not.
pub struct Step<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub spec: &'a str,
    pub after: &'a [&'a str],
}

/// An apply of nothing.
pub fn step<'a>(id: &'a str, after: &'a [&'a str]) -> Step<'a> {
    Step { id, kind: "k8s.apply/v1", spec: r#"{"objects":[]}"#, after }
}

/// What a guest says of itself.
pub struct Descriptor<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub schema: &'a str,
}

pub const HARMLESS: Descriptor<'static> = Descriptor { name: "hostile", version: "1", schema: "{}" };

/// The memory of a guest, as far as its answers are in it.
struct Memory(Vec<u8>);

impl Memory {
    /// Puts bytes where an answer can point to, and tells where.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = START + self.0.len() as u32;
        self.0.extend(bytes);
        at
    }

    /// A text as it is in a record: where it is, and how long.
    fn text(&mut self, text: &str) -> Vec<u8> {
        let at = self.put(text.as_bytes());
        words(&[at, text.len() as u32])
    }

    /// A list likewise.
    fn list(&mut self, items: Vec<Vec<u8>>) -> Vec<u8> {
        let count = items.len() as u32;
        let at = self.put(&items.concat());
        words(&[at, count])
    }

    fn steps(&mut self, steps: &[Step<'_>]) -> Vec<u8> {
        let mut items = Vec::new();
        for step in steps {
            let mut item: Vec<u8> = [step.id, step.kind, step.spec].map(|it| self.text(it)).concat();
            let after = step.after.iter().map(|id| self.text(id)).collect();
            item.extend(self.list(after));
            items.push(item);
        }
        self.list(items)
    }

    fn descriptor(&mut self, descriptor: &Descriptor<'_>) -> u32 {
        let Descriptor { name, version, schema } = descriptor;
        let fields = [name, version, "other", schema, "{}", "{}"].map(|it| self.text(it)).concat();
        self.put(&fields)
    }

    /// A plan of these steps.
    fn plan(&mut self, steps: &[Step<'_>]) -> u32 {
        let mut answer = words(&[0, 0]);
        answer.extend(self.steps(steps));
        answer.extend(self.steps(&[]));
        answer.extend(words(&[0, 0]));
        answer.extend(self.text("{}"));
        self.put(&answer)
    }

    /// The refusal of a configuration for this reason.
    fn invalid(&mut self, code: &str, path: &str, message: &str) -> u32 {
        let diagnostic = [words(&[2]), self.text(code), self.text(path), self.text(message)].concat();
        let list = self.list(vec![diagnostic]);
        self.put(&[words(&[1, 0]), list].concat())
    }

    fn component(self, describe: u32, plan: u32) -> Vec<u8> {
        let data: String = self.0.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let nothing_wrong = START - 8;
        let exports = format!(
            r#"(data (i32.const {START}) "{data}")
            (func (export "PACKAGE/planner@VERSION#describe") (result i32) (i32.const {describe}))
            (func (export "PACKAGE/planner@VERSION#validate") (param i32) (result i32)
              (i32.const {nothing_wrong}))
            (func (export "PACKAGE/planner@VERSION#plan") (param i32) (result i32) (i32.const {plan}))"#
        );
        component_exporting(WIT, "", &exports)
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A guest with this descriptor and a plan of these steps.
pub fn guest(descriptor: &Descriptor<'_>, steps: &[Step<'_>]) -> Vec<u8> {
    let mut memory = Memory(Vec::new());
    let (describe, plan) = (memory.descriptor(descriptor), memory.plan(steps));
    memory.component(describe, plan)
}

/// A guest that refuses every configuration with this diagnostic.
pub fn refusing(code: &str, path: &str, message: &str) -> Vec<u8> {
    let mut memory = Memory(Vec::new());
    let (describe, plan) = (memory.descriptor(&HARMLESS), memory.invalid(code, path, message));
    memory.component(describe, plan)
}
