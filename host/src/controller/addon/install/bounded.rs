//! As much of a text as the API server takes into a status.

/// How long a version or digest in a status may be.
const VERSION_CHARACTERS: usize = 128;
/// Lines of what an upgrade would change that a status has, and how long each may be.
const LINES: usize = 64;
const LINE_CHARACTERS: usize = 1024;

/// As much of a version or digest as a status takes.
pub(super) fn bounded(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(VERSION_CHARACTERS).collect()
}

/// As many lines as a status takes, and how many there are besides.
pub(super) fn bounded_lines(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES - 1);
        lines.push(format!("and {} more", more + 1));
    }
    lines.into_iter().map(|line| line.chars().take(LINE_CHARACTERS).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_takes_what_an_upgrade_changes_however_much_that_is() {
        let lines = |count: usize| (0..count).map(|n| format!("+ ConfigMap {n}")).collect::<Vec<_>>();
        assert_eq!(bounded_lines(lines(64)), lines(64));
        let many = bounded_lines(lines(100));
        assert_eq!((many.len(), many[63].as_str()), (64, "and 37 more"));
        assert_eq!(bounded_lines(vec!["ä".repeat(5000)])[0].chars().count(), 1024);
    }
}
