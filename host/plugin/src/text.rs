//! Text that plugins wrote, before people see it: in a condition, an event, a terminal.

/// A text without what a reader cannot see or what changes how the rest looks: line ends and tabs become
/// spaces; other control characters, those that turn the direction of writing, and those without width are
/// written as `\u{..}`. No longer than `bytes`; what is cut off is marked.
pub fn shown(text: &str, bytes: usize) -> String {
    const CUT: &str = "...";
    let mut shown = String::with_capacity(text.len().min(bytes));
    for character in text.chars() {
        let before = shown.len();
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            character if is_hidden(character) => shown.extend(character.escape_unicode()),
            character => shown.push(character),
        }
        if shown.len() > bytes {
            shown.truncate(before);
            shown.truncate(shown.floor_char_boundary(bytes.saturating_sub(CUT.len())));
            return shown + CUT;
        }
    }
    shown
}

/// Whether a character is not to be seen, or moves others: Unicode's controls, formats, separators of lines,
/// and tags.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a text can be a name: what nobody mistakes for another, and what no path, selector or list takes
/// for two. Letters and digits of ASCII, and `-`, `_`, `.`, `:`, `+` between them.
pub fn is_name(text: &str) -> bool {
    let is_end = |character: Option<char>| character.is_some_and(|it| it.is_ascii_alphanumeric());
    is_end(text.chars().next())
        && is_end(text.chars().next_back())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.:+".contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, expected) in [
            ("grün, 日本語, שלום, हिन्दी", "grün, 日本語, שלום, हिन्दी"),
            ("one\ntwo\tthree", "one two three"),
            ("\u{1b}[2Jcleared\0", r"\u{1b}[2Jcleared\u{0}"),
            ("safe\u{202e}exe.txt", r"safe\u{202e}exe.txt"),
            ("kube\u{200b}-system\u{feff}", r"kube\u{200b}-system\u{feff}"),
            ("\u{e0041}tag", r"\u{e0041}tag"),
        ] {
            assert_eq!(shown(text, 1000), expected);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(shown("abcdefgh", 8), "abcdefgh");
        assert_eq!(shown("abcdefghi", 8), "abcde...");
        assert_eq!(shown(&"é".repeat(100), 8), "éé...");
        let escaped = shown(&"\u{202e}".repeat(100), 10);
        assert!(escaped.len() <= 10 && escaped.ends_with("..."), "{escaped}");
    }

    #[test]
    fn names_are_plain() {
        for good in ["a", "calico", "v1.36.3+eks-1", "role-system:node", "UnsupportedKubernetesVersion"] {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["", "a/b", "..", "-a", "a b", "a\0", "a\n", "pl\u{430}in", "a\u{202e}b", "a\u{200b}", "a,b", "é"]
        {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
