//! Fields as managed fields name them (`fieldsV1`): which of one set another lacks, how they are shown to
//! people, and an object without them. A cluster chooses what is in such a set: whatever is made of it is
//! bounded.

use serde_json::{Map, Value};

/// Fields of one object that are compared.
const MOST: usize = 256;
/// Characters of one path that are shown.
const LONGEST: usize = 160;

/// The names that lead to a field, such as `f:spec`, `f:replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<String>);

/// A set as one text, whatever the order of its names.
pub(super) fn write(set: &Value, text: &mut String) {
    text.push('{');
    let mut entries: Vec<_> = set.as_object().into_iter().flatten().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    for (name, inner) in entries {
        text.push_str(&format!("{name:?}"));
        write(inner, text);
    }
    text.push('}');
}

/// Fields of `set` that are not in `other`.
pub(super) fn leaves(set: &Value, other: Option<&Value>) -> Vec<Path> {
    let mut res = Vec::new();
    collect(set, other, &mut Vec::new(), &mut res);
    res
}

fn collect<'a>(set: &'a Value, other: Option<&Value>, at: &mut Vec<&'a str>, res: &mut Vec<Path>) {
    for (name, inner) in set.as_object().into_iter().flatten() {
        if res.len() == MOST {
            return;
        }
        let other = other.and_then(|it| it.get(name));
        // The thing itself, beside what is in it.
        if name == "." {
            continue;
        }
        at.push(name);
        if !is_leaf(inner) {
            collect(inner, other, at, res);
        } else if other.is_none() {
            res.push(Path(at.iter().map(|it| (*it).to_owned()).collect()));
        }
        at.pop();
    }
}

fn is_leaf(set: &Value) -> bool {
    set.as_object().is_none_or(|fields| fields.keys().all(|name| name == "."))
}

/// Whether a set has a field, or something above it as a whole.
pub(super) fn contains(set: &Value, path: &Path) -> bool {
    let mut at = set;
    for (depth, name) in path.0.iter().enumerate() {
        match at.get(name) {
            Some(inner) => at = inner,
            None => return depth > 0 && at.as_object().is_some_and(Map::is_empty),
        }
    }
    true
}

impl Path {
    /// As people write it: `.spec.ports[port=80].name`.
    fn shown(&self) -> String {
        let one = |name: &String| {
            let (kind, rest) = name.split_once(':').unwrap_or(("", name));
            match kind {
                "f" if rest.contains('.') => format!("[{rest}]"),
                "f" => format!(".{rest}"),
                "k" => format!("[{}]", key(rest)),
                "v" => format!("[={}]", rest.trim_matches('"')),
                _ => format!("[{rest}]"),
            }
        };
        plain(&self.0.iter().map(one).collect::<String>(), LONGEST)
    }

    /// Takes the field out of an object, unless it is in a list.
    fn take_from(&self, object: &mut Value) {
        let Some((last, above)) = self.0.split_last() else { return };
        let mut at = object;
        for name in above {
            match name.strip_prefix("f:").and_then(|name| at.get_mut(name)) {
                Some(inner) => at = inner,
                None => return,
            }
        }
        if let (Some(name), Some(fields)) = (last.strip_prefix("f:"), at.as_object_mut()) {
            fields.remove(name);
        }
    }
}

/// An object without these fields.
pub fn without(object: &Value, paths: &[Path]) -> Value {
    let mut res = object.clone();
    paths.iter().for_each(|it| it.take_from(&mut res));
    res
}

/// `{"name":"a","port":80}` as `name=a,port=80`.
fn key(text: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return text.to_owned() };
    let one = |(name, value): (&String, &Value)| {
        format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    fields.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The first of these paths, and how many more there are.
pub(super) fn shown(paths: &[Path], most: usize) -> String {
    let first = paths.iter().take(most).map(Path::shown).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(most) {
        0 => first,
        _ if paths.len() == MOST => format!("{first} and many more"),
        more => format!("{first} and {more} more"),
    }
}

/// A text in one line, without what is invisible or turns the direction of writing, and not long.
pub(super) fn plain(text: &str, longest: usize) -> String {
    let shown: String = text
        .chars()
        .take(longest)
        .map(|it| if it.is_ascii_graphic() || it == ' ' { it } else { '?' })
        .collect();
    if text.chars().nth(longest).is_some() { format!("{shown}...") } else { shown }
}
