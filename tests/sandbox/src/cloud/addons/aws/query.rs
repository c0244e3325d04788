//! Parameters of a call of AWS's Query protocol, in the two spellings that EC2 and the other services have
//! for lists.
//!
//! Pure.

use std::collections::BTreeMap;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// An action and its parameters.
#[derive(Clone, Debug)]
pub struct Query {
    pub action: String,
    parameters: Vec<(String, String)>,
    filters: usize,
}

impl Query {
    /// The action without parameters.
    pub fn new(action: &str) -> Self {
        Self { action: action.to_owned(), parameters: Vec::new(), filters: 0 }
    }

    /// Adds a parameter.
    pub fn with(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.parameters.push((name.into(), value.to_string()));
        self
    }

    /// Adds a list: `Name.1`, `Name.2`; `Name` ends in `.member` except in EC2.
    pub fn list<V: ToString>(self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        values
            .into_iter()
            .zip(1..)
            .fold(self, |query, (value, number)| query.with(format!("{name}.{number}"), value))
    }

    /// Adds one of EC2's filters.
    pub fn filter<V: ToString>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        self.filters += 1;
        let prefix = format!("Filter.{}", self.filters);
        self.with(format!("{prefix}.Name"), name).list(&format!("{prefix}.Value"), values)
    }

    /// Adds tags: `Name.1.Key`, `Name.1.Value`.
    pub fn tags(self, name: &str, tags: &Tags) -> Self {
        tags.iter().zip(1..).fold(self, |query, ((key, value), number): (_, usize)| {
            query.with(format!("{name}.{number}.Key"), key).with(format!("{name}.{number}.Value"), value)
        })
    }

    /// Adds the tags that EC2 shall give what it creates.
    pub fn tagged(self, resource_type: &str, tags: &Tags) -> Self {
        self.with("TagSpecification.1.ResourceType", resource_type).tags("TagSpecification.1.Tag", tags)
    }

    /// The body to send to the API of that version.
    pub fn encode(&self, version: &str) -> String {
        let first = [("Action", self.action.as_str()), ("Version", version)];
        let rest = self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs =
            first.into_iter().chain(rest).map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Percent-encodes all but RFC 3986's unreserved characters.
pub fn encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_filters_and_tags_are_numbered_from_one() {
        let tags = Tags::from([("a/b".to_owned(), "c d".to_owned())]);
        let query = Query::new("CreateX")
            .list("Ids", ["i-1", "i-2"])
            .filter("vpc-id", ["vpc-1"])
            .filter("state", ["x"]);
        assert_eq!(
            query.tagged("volume", &tags).encode("1"),
            "Action=CreateX&Version=1&Ids.1=i-1&Ids.2=i-2&Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1&Filter.2.Name=state&\
             Filter.2.Value.1=x&TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=a%2Fb&\
             TagSpecification.1.Tag.1.Value=c%20d"
        );
    }
}
