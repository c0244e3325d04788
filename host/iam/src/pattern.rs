//! Wildcards of IAM: `*` is any run of characters, `?` is any one.

/// Whether letters that differ only in case are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Sensitive,
    Insensitive,
}

impl Case {
    fn same(self, a: char, b: char) -> bool {
        match self {
            Case::Sensitive => a == b,
            Case::Insensitive => a.eq_ignore_ascii_case(&b),
        }
    }

    pub(super) fn equal(self, a: &str, b: &str) -> bool {
        match self {
            Case::Sensitive => a == b,
            Case::Insensitive => a.eq_ignore_ascii_case(b),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    One,
    Many,
}

/// A text with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Token>);

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        Pattern(text.chars().map(token).collect())
    }

    /// A value of a policy whose version knows variables: `${*}`, `${?}` and `${$}` stand for the character
    /// itself. The error is the variable that only AWS can fill in.
    pub(super) fn with_variables(text: &str) -> Result<Pattern, String> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            tokens.extend(before.chars().map(token));
            match name {
                "*" | "?" | "$" => tokens.extend(name.chars().map(Token::Literal)),
                _ => return Err(name.to_owned()),
            }
            rest = after;
        }
        tokens.extend(rest.chars().map(token));
        Ok(Pattern(tokens))
    }

    pub(super) fn has_wildcards(&self) -> bool {
        self.0.iter().any(|it| !matches!(it, Token::Literal(_)))
    }

    /// The text when nothing in it is a wildcard: what operators that compare whole strings mean.
    pub(super) fn literal(&self) -> String {
        let char = |it: &Token| match it {
            Token::Literal(char) => *char,
            Token::One => '?',
            Token::Many => '*',
        };
        self.0.iter().map(char).collect()
    }

    /// Goes back only to the last `*`, so the time is at most the product of the lengths.
    pub(super) fn matches(&self, text: &str, case: Case) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut seen) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while seen < text.len() {
            match self.0.get(at) {
                Some(Token::Many) => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(Token::One) => (at, seen) = (at + 1, seen + 1),
                Some(Token::Literal(char)) if case.same(*char, text[seen]) => (at, seen) = (at + 1, seen + 1),
                _ => match star {
                    Some((star_at, from)) => {
                        star = Some((star_at, from + 1));
                        (at, seen) = (star_at + 1, from + 1);
                    }
                    None => return false,
                },
            }
        }
        self.0[at..].iter().all(|it| *it == Token::Many)
    }
}

fn token(char: char) -> Token {
    match char {
        '*' => Token::Many,
        '?' => Token::One,
        _ => Token::Literal(char),
    }
}

/// Whether the name of an action is one of a policy's; case never counts there.
pub(super) fn action_matches(pattern: &str, action: &str) -> bool {
    Pattern::new(pattern).matches(action, Case::Insensitive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_what_they_stand_for() {
        let matches = |pattern, text| Pattern::new(pattern).matches(text, Case::Sensitive);
        for (pattern, text) in [
            ("*", ""),
            ("a*", "a"),
            ("a*c*e", "abcde"),
            ("*ab", "aab"),
            ("a?c", "abc"),
            ("**", "x"),
            ("", ""),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "A"), ("a?", "a"), ("", "a"), ("a*c", "abcd"), ("?", ""), ("a*b*c", "acb")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn case_counts_only_where_it_should() {
        assert!(action_matches("STS:assume*", "sts:AssumeRoleWithWebIdentity"));
        assert!(!Pattern::new("System:*").matches("system:x", Case::Sensitive));
    }

    #[test]
    fn many_wildcards_do_not_take_forever() {
        assert!(!Pattern::new(&"*a".repeat(40)).matches(&"a".repeat(39), Case::Sensitive));
    }

    #[test]
    fn escaped_wildcards_are_plain_characters_and_variables_are_named() {
        let escaped = Pattern::with_variables("a${*}b*").unwrap();
        assert!(escaped.matches("a*bc", Case::Sensitive) && !escaped.matches("axbc", Case::Sensitive));
        assert_eq!(Pattern::with_variables("x/${aws:username}"), Err("aws:username".to_owned()));
        assert!(Pattern::with_variables("${open").unwrap().matches("${open", Case::Sensitive));
    }
}
