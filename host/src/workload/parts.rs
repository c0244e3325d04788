//! Reads the JSON of an answer into values: only the parts that are asked for, and no more than there is room
//! for. What is not asked for is skipped as it is read.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What a value takes in a list that grows: such lists have up to twice the room that they need.
const VALUE: usize = 2 * size_of::<Value>();
/// What a text takes beside its bytes.
const TEXT: usize = 16;
/// What the entries of an object take, in nodes of a B-tree that are about half full.
const NODE: usize = 640;
const ENTRIES_OF_NODE: usize = 6;

/// Parts of an object, as a tree of the names that lead to them; no name: all of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts(Vec<(String, Parts)>);

impl Parts {
    /// Those at these JSON pointers, of which none goes through a list. No pointer: all.
    pub(super) fn at(pointers: &[&str]) -> Parts {
        let mut pointers = pointers.to_vec();
        // What is below a part comes after it, and is in it already.
        pointers.sort_by_key(|pointer| pointer.matches('/').count());
        let mut res = Parts::default();
        'pointers: for pointer in pointers {
            let mut place = &mut res;
            for name in pointer.split('/').skip(1) {
                let name = name.replace("~1", "/").replace("~0", "~");
                let known = place.0.iter().position(|(known, _)| *known == name);
                let index = known.unwrap_or_else(|| {
                    place.0.push((name, Parts::default()));
                    place.0.len() - 1
                });
                place = &mut place.0[index].1;
                if known.is_some() && place.is_all() {
                    continue 'pointers;
                }
            }
        }
        res
    }

    fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, name: &str) -> Option<&Parts> {
        if self.is_all() {
            return Some(self);
        }
        self.0.iter().find(|(known, _)| known == name).map(|(_, parts)| parts)
    }
}

/// Room in memory for values, in bytes. It is about what they take, and never less by much.
#[derive(Debug)]
pub(super) struct Room {
    left: Cell<usize>,
    is_full: Cell<bool>,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Room {
        Room { left: Cell::new(bytes), is_full: Cell::new(false) }
    }

    /// What is left of it.
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether something did not fit: what was read is then not whole.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.is_full.set(true);
                Err(E::custom("there is no room for it"))
            }
        }
    }
}

/// Reads one value; `None` where a part is asked for of something that has no parts.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) parts: &'a Parts,
    pub(super) room: &'a Room,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Reader<'_> {
    fn plain<E: Error>(self, bytes: usize, value: impl FnOnce() -> Value) -> Result<Option<Value>, E> {
        if !self.parts.is_all() {
            return Ok(None);
        }
        self.room.take(VALUE + bytes)?;
        Ok(Some(value()))
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Value>, E> {
        self.plain(0, || Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<Value>, E> {
        self.plain(0, || value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Option<Value>, E> {
        self.plain(0, || value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Option<Value>, E> {
        self.plain(0, || value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Option<Value>, E> {
        self.plain(0, || value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Option<Value>, E> {
        self.plain(TEXT + value.len(), || value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<Value>, A::Error> {
        if !self.parts.is_all() {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        self.room.take(VALUE)?;
        let mut res = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            res.extend(item);
        }
        Ok(Some(Value::Array(res)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Option<Value>, A::Error> {
        self.room.take(VALUE)?;
        let mut res = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let Some(parts) = self.parts.of(&name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let node = if res.len().is_multiple_of(ENTRIES_OF_NODE) { NODE } else { 0 };
            self.room.take(TEXT + name.len() + node)?;
            if let Some(value) = fields.next_value_seed(Reader { parts, room: self.room })? {
                res.insert(name, value);
            }
        }
        Ok(Some(Value::Object(res)))
    }
}

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The parts of each item that were asked for.
    pub(super) items: Vec<Value>,
    /// What the next page is asked for with; empty when this is the last one.
    pub(super) next: String,
}

/// Reads one page of a list, its items as [`Reader`] does.
#[derive(Clone, Copy)]
pub(super) struct PageReader<'a>(pub(super) Reader<'a>);

impl<'de> DeserializeSeed<'de> for PageReader<'_> {
    type Value = Page;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Page, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageReader<'_> {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Page, A::Error> {
        let mut res = Page::default();
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "items" => fields.next_value_seed(Items(self.0, &mut res.items))?,
                "metadata" => {
                    let metadata = fields
                        .next_value_seed(Reader { parts: &Parts::at(&["/continue"]), room: self.0.room })?;
                    let next = metadata.as_ref().and_then(|it| it["continue"].as_str());
                    res.next = next.unwrap_or_default().to_owned();
                }
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(res)
    }
}

/// The items of a list, which may be `null`.
struct Items<'a, 'b>(Reader<'a>, &'b mut Vec<Value>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(self.0)? {
            self.1.extend(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, pointers: &[&str], bytes: usize) -> (Result<Option<Value>, String>, Room) {
        let (parts, room) = (Parts::at(pointers), Room::new(bytes));
        let mut deserializer = serde_json::Deserializer::from_slice(text.as_bytes());
        let value =
            Reader { parts: &parts, room: &room }.deserialize(&mut deserializer).map_err(|it| it.to_string());
        (value, room)
    }

    #[test]
    fn only_the_parts_that_are_asked_for_are_kept_where_they_were() {
        let pod = json!({"metadata": {"name": "a", "annotations": {"b": "c"}},
            "spec": {"volumes": [{"name": "d"}], "containers": []}});
        let parts = ["/metadata/name", "/metadata/ownerReferences", "/spec/volumes"];
        let (value, _) = read(&pod.to_string(), &parts, 1 << 20);
        assert_eq!(value, Ok(Some(json!({"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "d"}]}}))));
        let (value, _) = read(&pod.to_string(), &[], 1 << 20);
        assert_eq!(value, Ok(Some(pod)));
        let odd = json!({"metadata": "a", "spec": [1], "x": {"a/b~c": 1, "d": 2}});
        let (value, _) = read(&odd.to_string(), &["/metadata/name", "/spec/volumes", "/x/a~1b~0c"], 1 << 20);
        assert_eq!(value, Ok(Some(json!({"x": {"a/b~c": 1}}))));
    }

    #[test]
    fn skipped_parts_take_no_room_and_what_does_not_fit_ends_it() {
        let zeros = format!("{{\"a\": [{}0], \"b\": 1}}", "0,".repeat(1 << 20));
        let (value, room) = read(&zeros, &["/b"], 4096);
        assert_eq!((value, room.is_full()), (Ok(Some(json!({"b": 1}))), false));
        let (value, room) = read(&zeros, &[], 1 << 20);
        assert!(value.is_err() && room.is_full());
        let (value, room) = read("{", &[], 1 << 20);
        assert!(value.is_err() && !room.is_full(), "it is no JSON, and there was room");
    }

    /// What values take is what the allocator is asked for; it is estimated for the worst that a text of some
    /// length can become.
    #[test]
    fn room_is_taken_for_what_small_values_become() {
        for (text, each) in
            [("0", 32), ("\"\"", 32), ("{\"\":0}", 632 + 32), ("[0]", 64), ("{}", 32), ("[]", 32)]
        {
            const COUNT: usize = 1000;
            let (value, room) = read(&format!("[{}]", vec![text; COUNT].join(",")), &[], 1 << 20);
            assert!(value.is_ok(), "{text}");
            let taken = (1 << 20) - room.left();
            assert!(taken >= COUNT * each, "{text}: {taken}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_refused() {
        let (value, room) = read(&"[".repeat(1 << 20), &[], 1 << 30);
        assert!(value.is_err_and(|it| it.contains("recursion limit")) && !room.is_full());
        let skipped = format!("{{\"a\": {}}}", "[".repeat(1 << 20));
        assert!(read(&skipped, &["/b"], 1 << 20).0.is_err());
    }

    #[test]
    fn a_page_is_reduced_while_it_is_read() {
        let list = json!({"kind": "PodList", "metadata": {"continue": "abc", "resourceVersion": "1"},
            "items": [
            {"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}, {"metadata": {"name": "b"}},
                "odd"]});
        let (parts, room) = (Parts::at(&["/metadata/name"]), Room::new(1 << 20));
        let page = |text: &str| {
            let mut deserializer = serde_json::Deserializer::from_slice(text.as_bytes());
            PageReader(Reader { parts: &parts, room: &room })
                .deserialize(&mut deserializer)
                .map_err(|it| it.to_string())
        };
        let read = page(&list.to_string()).expect("a page");
        assert_eq!(
            (read.next.as_str(), read.items),
            ("abc", vec![json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b"}})])
        );
        let empty = page(r#"{"items": null, "metadata": {}}"#).expect("a page");
        assert_eq!((empty.next.as_str(), empty.items.len()), ("", 0));
        assert!(page("[]").is_err());
    }
}
