//! How long and deep the path of a volume's directory gets, which EFS limits: what is sure to be too long
//! is told before a claim is made.
//!
//! Source: `validateEfsPathRequirements` and `interpolateRootDirectoryName` in `pkg/driver/controller.go` of
//! kubernetes-sigs/aws-efs-csi-driver; CreateAccessPoint in the Amazon EFS API Reference, RootDirectory.

use crate::storage_class::StorageClass;
use plugin_sdk::Diagnostic;

/// Characters of a path that EFS takes.
const LONGEST: usize = 100;
/// Directories below the first one that EFS takes.
const DEEPEST: usize = 5;
/// What a pattern may name, with the fewest characters that it stands for: a claim's namespace, its name, and
/// `pvc-` and a UUID.
const VARIABLES: [(&str, usize); 3] =
    [("${.PVC.namespace}", 1), ("${.PVC.name}", 1), ("${.PV.name}", VOLUME)];
const VOLUME: usize = 40;
/// A dash and a UUID.
const UNIQUE: usize = 37;

/// What is wrong with the paths of a class, if every volume would fail because of it.
pub fn problems(class: &StorageClass) -> Option<Diagnostic> {
    let base = parts(class.base_path.as_deref().unwrap_or_default());
    let (field, below, end) = match &class.sub_path_pattern {
        None => ("basePath", Shape { characters: VOLUME, parts: 1 }, 0),
        Some(pattern) => match shape(pattern) {
            Ok(below) => ("subPathPattern", below, if class.is_unique() { UNIQUE } else { 0 }),
            Err(message) => return Some(problem("UnknownVariable", "subPathPattern", message)),
        },
    };
    let base_characters: usize = base.iter().map(|part| part.len() + 1).sum();
    let (characters, parts) = (base_characters + 1 + below.characters + end, base.len() + below.parts);
    if characters > LONGEST {
        let over = (characters - LONGEST).to_string();
        let message = [
            "makes paths of at least ",
            &characters.to_string(),
            " characters, and EFS takes 100: shorten it by ",
            &over,
        ];
        return Some(problem("PathTooLong", field, message.concat()));
    }
    (parts > DEEPEST).then(|| {
        let message =
            ["makes paths of ", &parts.to_string(), " directories, and EFS takes 5 at most"].concat();
        problem("PathTooDeep", field, message)
    })
}

fn problem(code: &str, field: &str, message: String) -> Diagnostic {
    Diagnostic::error(code, &["/storageClass/", field].concat(), message)
}

/// The directories of a path, as they are joined: without what is empty.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// What a pattern stands for at least.
struct Shape {
    characters: usize,
    parts: usize,
}

/// The shape of a pattern; what is wrong with it if it names something that the driver does not know.
fn shape(pattern: &str) -> Result<Shape, String> {
    let parts = parts(pattern);
    let mut rest = parts.join("/");
    let mut characters = 0;
    for (name, least) in VARIABLES {
        let around: Vec<&str> = rest.split(name).collect();
        characters += (around.len() - 1) * least;
        rest = around.concat();
    }
    if rest.contains(['$', '{', '}']) {
        return Err(
            "can name ${.PVC.namespace}, ${.PVC.name} and ${.PV.name}, and nothing else with $ and braces"
                .to_owned(),
        );
    }
    Ok(Shape { characters: characters + rest.len(), parts: parts.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(base: &str, pattern: Option<&str>, unique: bool) -> Option<String> {
        let class = StorageClass {
            base_path: Some(base.to_owned()),
            sub_path_pattern: pattern.map(str::to_owned),
            ensure_unique_directory: Some(unique),
            ..StorageClass::default()
        };
        problems(&class).map(|it| it.code)
    }

    #[test]
    fn a_volumes_directory_fits_below_59_characters_and_no_more() {
        let of = |characters: usize| ["/", &"a".repeat(characters - 1)].concat();
        assert_eq!(code(&of(59), None, true), None);
        assert_eq!(code(&of(60), None, true).as_deref(), Some("PathTooLong"));
        assert_eq!(
            code(&[of(59).as_str(), "//"].concat(), None, true),
            None,
            "slashes at the end are not in the path"
        );
        assert_eq!(code("/", None, true), None);
    }

    #[test]
    fn a_pattern_is_as_long_as_it_is_at_least() {
        let claim = "${.PVC.namespace}/${.PVC.name}";
        assert_eq!(code("/pods", Some(claim), true), None);
        let of = |characters: usize| ["/", &"a".repeat(characters - 1)].concat();
        // "/n/c" and a dash with a UUID.
        assert_eq!(code(&of(59), Some(claim), true), None);
        assert_eq!(code(&of(60), Some(claim), true).as_deref(), Some("PathTooLong"));
        assert_eq!(code(&of(60), Some(claim), false), None);
        assert_eq!(code("/", Some("${.PV.name}/${.PV.name}"), true).as_deref(), Some("PathTooLong"));
    }

    #[test]
    fn no_more_than_five_directories_are_in_each_other() {
        assert_eq!(code("/a/b/c/d", None, true), None);
        assert_eq!(code("/a/b/c/d/e", None, true).as_deref(), Some("PathTooDeep"));
        assert_eq!(code("/a/b/c/d", Some("e/${.PVC.name}"), true).as_deref(), Some("PathTooDeep"));
    }

    #[test]
    fn only_what_the_driver_knows_is_put_in() {
        for pattern in ["${.PVC.uid}", "$name", "{.PV.name}"] {
            assert_eq!(code("/", Some(pattern), true).as_deref(), Some("UnknownVariable"), "{pattern}");
        }
    }
}
