//! Sanitizes the words of a workload cluster before people are shown them or decisions follow from them:
//! whoever administers the cluster chooses them.

use addons::Cause;

/// Bytes of a text that are shown.
const LONGEST: usize = 1024;
/// Fields that the API server names as wrong, and bytes of each.
const FIELDS: usize = 64;
const LONGEST_FIELD: usize = 256;
/// Bytes of an object's name (RFC 1123, as Kubernetes has it).
const LONGEST_NAME: usize = 253;

/// A text in one line and in quotes, so that nobody takes it for the operator's own.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text).replace('"', "'"))
}

/// A text in one line, of what the operator itself found out and others may have put words into.
pub(super) fn plain(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(LONGEST)];
    // What is invisible, or turns the direction of writing, is escaped.
    let line: String = shown.split_whitespace().collect::<Vec<_>>().join(" ").chars().map(visible).collect();
    if shown.len() < text.len() { format!("{line}...") } else { line }
}

/// Paths of fields. One that looks like none stays one that nobody knows.
pub(super) fn fields(all: impl Iterator<Item = String>) -> Vec<String> {
    let is_path =
        |path: &String| path.len() <= LONGEST_FIELD && path.bytes().all(|byte| byte.is_ascii_graphic());
    all.take(FIELDS).map(|it| if is_path(&it) { it } else { "?".to_owned() }).collect()
}

/// Whether an API server can have an object of this name: one that goes into a path as it is, and into a
/// message.
pub(super) fn is_name(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && !b"/%\"'\\".contains(&byte);
    !["", ".", ".."].contains(&text) && text.len() <= LONGEST_NAME && text.bytes().all(is_fit)
}

/// Why a write was refused, to decide by. There are none when there are too many, or one is too long: half of
/// them would look like all.
pub(super) fn causes<'a>(all: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)>) -> Vec<Cause> {
    let cause = |(reason, message): (Option<&str>, Option<&str>)| {
        let text = |text: Option<&str>| text.filter(|it| it.len() <= LONGEST).map(str::to_owned);
        Some(Cause { reason: text(reason)?, message: text(message)? })
    };
    let some: Option<Vec<Cause>> = all.take(FIELDS + 1).map(cause).collect();
    some.filter(|it| it.len() <= FIELDS).unwrap_or_default()
}

fn visible(character: char) -> char {
    match character.escape_debug().count() {
        1 => character,
        _ if matches!(character, '"' | '\'' | '\\') => character,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_says_is_one_line_in_quotes_and_not_long() {
        assert_eq!(quoted("conflict with \"kubectl\":\n\t- .spec"), "\"conflict with 'kubectl': - .spec\"");
        assert_eq!(quoted("\u{202e}evil\u{7}\u{1b}[31m"), "\"?evil??[31m\"");
        let long = quoted(&"ä".repeat(100_000));
        assert!(long.len() <= LONGEST + 5 && long.ends_with("...\""), "{}", long.len());
    }

    #[test]
    fn a_name_fits_into_a_path_and_a_message() {
        for good in ["a", "kube-system", "system:kube-proxy", "prod.example.com", "A_b", &"x".repeat(253)] {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["", ".", "..", "a/b", "../secrets/x", "a%2fb", "a b", "a\nb", "ä", "a\"b", &"x".repeat(254)]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn fields_are_few_and_look_like_paths() {
        let all = ["spec.selector", "a b", "x\ny", &"z".repeat(1000)].map(str::to_owned);
        assert_eq!(fields(all.into_iter()), ["spec.selector", "?", "?", "?"]);
        assert_eq!(fields(std::iter::repeat_n("a".to_owned(), 1000)).len(), FIELDS);
    }

    #[test]
    fn causes_are_told_all_or_none() {
        let of = |all: &[(Option<&'static str>, Option<&'static str>)]| causes(all.iter().copied()).len();
        let one = (Some("FieldManagerConflict"), Some("conflict with \"a\" using v1"));
        assert_eq!(of(&[one, one]), 2);
        assert_eq!([of(&[one, (None, one.1)]), of(&[one, (one.0, None)])], [0, 0]);
        assert_eq!([of(&vec![one; FIELDS]), of(&vec![one; FIELDS + 1])], [FIELDS, 0]);
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(causes([(Some("a"), Some(long.as_str()))].into_iter()), []);
    }
}
