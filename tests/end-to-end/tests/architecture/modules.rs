//! The modules of a crate and which of them name which: a module is a file, and its edges are the paths in it
//! that begin with `crate` or `super`, in macros too. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// Names from the crate's root to a module, which has none itself.
type ModulePath = Vec<String>;

/// The modules of one crate, its front door (`lib.rs`, `main.rs`) aside.
pub struct Modules {
    files: BTreeMap<ModulePath, PathBuf>,
    edges: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
}

impl Modules {
    /// Reads the files of a crate, which are below `root`.
    pub fn read(root: &Path, files: Vec<PathBuf>) -> Self {
        let mut all: BTreeMap<ModulePath, PathBuf> =
            files.into_iter().map(|file| (module_path(root, &file), file)).collect();
        let mut readers = BTreeMap::new();
        for (module, file) in &all {
            let text = std::fs::read_to_string(file).expect("a source file");
            let mut reader = Reader::default();
            reader.read(text.parse().expect("Rust"), module);
            readers.insert(module.clone(), reader);
        }
        let tests: BTreeSet<ModulePath> =
            readers.values().flat_map(|reader| reader.tests.iter().cloned()).collect();
        all.retain(|module, _| !module.is_empty() && !tests.iter().any(|test| module.starts_with(test)));
        let edges = all.keys().map(|module| {
            let named = readers[module].paths.iter().filter_map(|path| longest_module(&all, path));
            (module.clone(), named.filter(|named| !related(module, named)).collect())
        });
        Self { edges: edges.collect(), files: all }
    }

    /// The shortest circles, one for each module that is the first by name in its own: file by file, the
    /// first one again at the end.
    pub fn circles(&self) -> Vec<Vec<&Path>> {
        let circles = self.edges.keys().filter_map(|start| self.circle(start));
        circles
            .map(|circle| circle.into_iter().map(|module| self.files[module].as_path()).collect())
            .collect()
    }

    /// The shortest way from a module back to itself by modules that come after it.
    fn circle<'a>(&'a self, start: &'a ModulePath) -> Option<Vec<&'a ModulePath>> {
        let mut ways = VecDeque::from([vec![start]]);
        let mut reached = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in &self.edges[*way.last()?] {
                let longer = [way.as_slice(), &[next]].concat();
                if next == start {
                    return Some(longer);
                }
                if next > start && reached.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }
}

/// Names of the functions in a file's text, those of its tests included.
pub fn functions(text: &str) -> Vec<String> {
    fn collect(tokens: TokenStream, names: &mut Vec<String>) {
        let mut after_fn = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if after_fn => names.push(name.to_string()),
                TokenTree::Group(group) => collect(group.stream(), names),
                _ => {}
            }
            after_fn = is_word(&token, "fn");
        }
    }
    let mut names = Vec::new();
    collect(text.parse().expect("Rust"), &mut names);
    names
}

/// A module and those above and below it may use one another.
fn related(one: &ModulePath, other: &ModulePath) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn module_path(root: &Path, file: &Path) -> ModulePath {
    let path = file.strip_prefix(root).expect("a file of the crate").with_extension("");
    let mut names: ModulePath =
        path.iter().map(|name| name.to_str().expect("names are UTF-8").to_owned()).collect();
    if names.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

/// The module that a path from the root leads into; none when it is an item of the front door.
fn longest_module(all: &BTreeMap<ModulePath, PathBuf>, path: &[String]) -> Option<ModulePath> {
    (1..=path.len()).rev().map(|length| path[..length].to_vec()).find(|module| all.contains_key(module))
}

/// What the tokens of one file say.
#[derive(Default)]
struct Reader {
    /// Paths from the root of the crate, of other modules or of items in them.
    paths: Vec<ModulePath>,
    /// Modules that are compiled for tests only.
    tests: Vec<ModulePath>,
}

impl Reader {
    /// Reads what is in `module`.
    fn read(&mut self, tokens: TokenStream, module: &ModulePath) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = after;
            match token {
                TokenTree::Ident(_) if is_word(token, "crate") => rest = self.path(after, Vec::new()),
                TokenTree::Ident(_) if is_word(token, "super") => rest = self.path(after, parent(module)),
                TokenTree::Ident(_) if is_word(token, "mod") => {
                    if let [TokenTree::Ident(name), TokenTree::Group(body), after @ ..] = after {
                        self.read(body.stream(), &child(module, name));
                        rest = after;
                    }
                }
                TokenTree::Group(group) if is_attribute_of_tests(group) => {
                    rest = self.skip_item(after, module);
                }
                TokenTree::Group(group) => self.read(group.stream(), module),
                _ => {}
            }
        }
    }

    /// Passes over an item of tests, but for the name of a module; returns what is behind it.
    fn skip_item<'a>(&mut self, tokens: &'a [TokenTree], module: &ModulePath) -> &'a [TokenTree] {
        let ends = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            token => is_punctuation(token, ';'),
        };
        let end = tokens.iter().position(ends).map_or(tokens.len(), |position| position + 1);
        let names = tokens[..end].windows(2).filter_map(|pair| match pair {
            [word, TokenTree::Ident(name)] if is_word(word, "mod") => Some(child(module, name)),
            _ => None,
        });
        self.tests.extend(names);
        &tokens[end..]
    }

    /// Follows a path, or a tree of them, that has led to `path` so far; returns what is behind it.
    fn path<'a>(&mut self, tokens: &'a [TokenTree], path: ModulePath) -> &'a [TokenTree] {
        match tokens {
            [one, two, rest @ ..] if is_punctuation(one, ':') && is_punctuation(two, ':') => {
                self.segment(rest, path)
            }
            _ => {
                self.paths.push(path);
                tokens
            }
        }
    }

    fn segment<'a>(&mut self, tokens: &'a [TokenTree], path: ModulePath) -> &'a [TokenTree] {
        match tokens {
            [word, rest @ ..] if is_word(word, "self") => self.path(rest, path),
            [word, rest @ ..] if is_word(word, "super") => self.path(rest, parent(&path)),
            [TokenTree::Ident(name), rest @ ..] => self.path(rest, child(&path, name)),
            [TokenTree::Group(tree), rest @ ..] if tree.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = tree.stream().into_iter().collect();
                for branch in inner.split(|token| is_punctuation(token, ',')) {
                    self.segment(branch, path.clone());
                }
                rest
            }
            _ => {
                self.paths.push(path);
                tokens
            }
        }
    }
}

fn parent(module: &ModulePath) -> ModulePath {
    module.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default()
}

fn child(module: &ModulePath, name: &Ident) -> ModulePath {
    [module.as_slice(), &[name.to_string()]].concat()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

fn is_punctuation(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == character)
}

fn is_attribute_of_tests(group: &Group) -> bool {
    group.delimiter() == Delimiter::Bracket && group.stream().to_string().replace(' ', "") == "cfg(test)"
}
