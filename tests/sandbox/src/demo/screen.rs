//! Shows a tree that changes in place on a terminal, and one line per change elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::snapshot::Row;

/// The size assumed when the terminal does not tell.
const SIZE: (usize, usize) = (40, 160);

/// Where the demo is shown.
pub struct Screen {
    title: String,
    started: Instant,
    /// Rows and columns, when this is a terminal.
    terminal: Option<(usize, usize)>,
    /// Lines of the tree that is on the screen now.
    drawn: usize,
    /// What was said last of each row, where lines cannot change.
    said: BTreeMap<(&'static str, String), String>,
}

impl Screen {
    pub fn new(title: &str) -> Self {
        let terminal = std::io::stdout().is_terminal().then(size);
        Self { title: title.to_owned(), started: Instant::now(), terminal, drawn: 0, said: BTreeMap::new() }
    }

    /// Prints a line that stays.
    pub fn say(&mut self, line: &str) {
        self.erase();
        println!("{line}");
    }

    /// Prints that a phase is over.
    pub fn passed(&mut self, title: &str, elapsed: Duration) {
        self.say(&format!(
            "[{:>4} s] {title}: done in {} s",
            self.started.elapsed().as_secs(),
            elapsed.as_secs()
        ));
    }

    /// Shows what there is while `phase` lasts.
    pub fn show(&mut self, phase: &str, rows: &[Row]) {
        match self.terminal {
            Some((height, width)) => self.draw(phase, rows, height, width),
            None => self.tell(rows),
        }
    }

    /// Takes the tree off the screen.
    pub fn close(&mut self) {
        self.erase();
    }

    fn draw(&mut self, phase: &str, rows: &[Row], height: usize, width: usize) {
        self.erase();
        let head = format!("{}: {phase}, {} s", self.title, self.started.elapsed().as_secs());
        let mut lines = vec![head];
        lines.extend(tree(rows));
        let room = height.saturating_sub(2).max(1);
        if lines.len() > room {
            let hidden = lines.len() - room + 1;
            lines.truncate(room - 1);
            lines.push(format!("... {hidden} more lines"));
        }
        self.drawn = lines.len();
        for line in lines {
            println!("{}", line.chars().take(width.saturating_sub(1)).collect::<String>());
        }
        // A closed stdout is noticed by the next line.
        let _ = std::io::stdout().flush();
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            print!("\x1b[{}F\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    fn tell(&mut self, rows: &[Row]) {
        let now: BTreeMap<(&'static str, String), String> =
            rows.iter().map(|row| ((row.branch, row.name.clone()), row.state.clone())).collect();
        let seconds = self.started.elapsed().as_secs();
        for row in rows {
            let key = (row.branch, row.name.clone());
            if self.said.get(&key) != Some(&row.state) {
                println!("[{seconds:>4} s] {:<8} {:<44} {}", row.branch, row.name, row.state);
            }
        }
        for (branch, name) in self.said.keys().filter(|key| !now.contains_key(*key)) {
            println!("[{seconds:>4} s] {branch:<8} {name:<44} gone");
        }
        self.said = now;
    }
}

/// The rows as lines, each branch under its name.
fn tree(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut branch = "";
    for (index, row) in rows.iter().enumerate() {
        if row.branch != branch {
            branch = row.branch;
            lines.push(format!("  {branch}"));
        }
        let last = rows.get(index + 1).is_none_or(|next| next.branch != branch);
        lines.push(format!("  {} {:<44} {}", if last { "└─" } else { "├─" }, row.name, row.state));
    }
    lines
}

fn size() -> (usize, usize) {
    let output = Command::new("stty").arg("size").stdin(Stdio::inherit()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut numbers =
        text.split_whitespace().filter_map(|word| word.parse().ok()).filter(|&number| number > 0);
    numbers.next().zip(numbers.next()).unwrap_or(SIZE)
}
