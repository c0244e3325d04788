//! What others wrote, made fit for a message: short, in one line, without control or direction characters.

/// Characters of it that a message shows at most.
const SHOWN: usize = 120;

/// The text in quotes, cut where it is long, with every character that is not plain ASCII escaped.
pub fn shown(text: &str) -> String {
    let mut escaped: String = text.chars().take(SHOWN).flat_map(char::escape_default).collect();
    if text.chars().nth(SHOWN).is_some() {
        escaped.push_str("...");
    }
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_and_cannot_forge_a_line() {
        assert_eq!(shown("a\nb\u{202e}c\"d"), r#""a\nb\u{202e}c\"d""#);
        assert_eq!(shown(&"x".repeat(500)).len(), SHOWN + "\"...\"".len());
    }
}
