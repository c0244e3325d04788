//! The XML of AWS's answers: elements and text.
//!
//! Pure. Attributes, comments and namespaces carry nothing there and are dropped.

use anyhow::{Context, Result, bail, ensure};

/// An element; one that has children has no text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the element at a path of names with slashes; empty if there is none.
    pub fn text(&self, path: &str) -> &str {
        path.split('/')
            .try_fold(self, |element, name| element.child(name))
            .map_or("", |element| element.text.as_str())
    }

    /// The entries of the list of that name.
    pub fn entries(&self, list: &str) -> &[Self] {
        self.child(list).map_or(&[], |list| list.children.as_slice())
    }

    /// The first element of that name at any depth.
    pub fn descend(&self, name: &str) -> Option<&Self> {
        self.children
            .iter()
            .find_map(|child| if child.name == name { Some(child) } else { child.descend(name) })
    }

    /// The value of a tag, in EC2's spelling of lists of tags.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.entries("tagSet").iter().find(|tag| tag.text("key") == key).map(|tag| tag.text("value"))
    }
}

/// Parses a document.
///
/// # Errors
/// When it is not well-formed.
pub fn parse(document: &str) -> Result<Element> {
    let mut open = vec![Element::default()];
    let mut rest = document;
    while let Some(start) = rest.find('<') {
        let (text, tag) = rest.split_at(start);
        if let Some(element) = open.last_mut() {
            element.text.push_str(&unescape(text));
        }
        let end = tag.find('>').context("a tag is not closed")?;
        let inside = tag[..end].trim_start_matches('<');
        rest = &tag[end + 1..];
        if inside.starts_with(['?', '!']) {
            continue;
        }
        if let Some(name) = inside.strip_prefix('/') {
            close(&mut open, name.trim())?;
            continue;
        }
        let name = inside.trim_end_matches('/').split_whitespace().next().context("a tag has no name")?;
        open.push(Element { name: name.to_owned(), ..Element::default() });
        if inside.ends_with('/') {
            close(&mut open, name)?;
        }
    }
    let root = open.pop().context("nothing is open")?;
    ensure!(open.is_empty(), "{} is not closed", root.name);
    root.children.into_iter().next().context("there is no element")
}

fn close(open: &mut Vec<Element>, name: &str) -> Result<()> {
    let mut element = open.pop().context("nothing is open")?;
    if element.name != name {
        bail!("{name} closes {}", element.name);
    }
    if !element.children.is_empty() {
        element.text.clear();
    }
    element.text = element.text.trim().to_owned();
    open.last_mut().context("more is closed than was opened")?.children.push(element);
    Ok(())
}

fn unescape(text: &str) -> String {
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&amp;", "&"),
    ];
    named.iter().fold(text.to_owned(), |text, (name, character)| text.replace(name, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_paths_are_found() {
        let text = "<?xml version=\"1.0\"?>\n<R xmlns=\"x\">\n <set><item><id>a</id><tagSet><item><key>k</key><value>v &amp; w</value>\
            </item></tagSet></item><item><id>b</id><none/></item></set></R>";
        let root = parse(text).expect("well-formed");
        let ids: Vec<&str> = root.entries("set").iter().map(|item| item.text("id")).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(root.entries("set")[0].tag("k"), Some("v & w"));
        assert_eq!(root.text("set/item/id"), "a");
        assert_eq!(root.text("set/nothing"), "");
        assert_eq!(root.descend("value").map(|found| found.text.as_str()), Some("v & w"));
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        assert!(parse("<a><b></a></b>").is_err());
        assert!(parse("<a>").is_err());
        assert!(parse("words").is_err());
    }
}
