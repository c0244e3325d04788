//! Which file system volumes are made on: the one that the settings name, or the one that has the tags
//! that they name. What was chosen once stays chosen for as long as it has the tags, because a
//! StorageClass is made anew to be about another.

use crate::config::{Config, TAGS};
use crate::objects::DRIVER;
use crate::storage_class::StorageClass;
use plugin_sdk::{Diagnostic, FactValue, Request, Severity, Stop, facts};
use serde_json::json;

/// How many file systems are named in a message.
const NAMED: usize = 5;

/// A choice.
pub struct Chosen {
    pub id: String,
    /// What the user should know about it.
    pub warning: Option<Diagnostic>,
}

/// The file system for the volumes of `class`, in a region.
///
/// # Errors
/// Pending while it is not known which file systems have the tags, invalid when none has them or several do,
/// unsupported when the host may not look.
pub fn choose(request: &Request<Config>, class: &StorageClass, region: &str) -> Result<Chosen, Stop> {
    if let Some(id) = &request.config.file_system_id {
        return Ok(Chosen { id: id.clone(), warning: None });
    }
    let fact = request.facts.iter().find(|fact| fact.key == facts::FILE_SYSTEMS);
    match fact.map(|fact| &fact.value) {
        Some(FactValue::Present(_)) => found(request, class, region),
        Some(FactValue::Denied(why)) => kept(request, class, why).ok_or_else(|| denied(why)),
        Some(FactValue::Unknown(why)) => kept(request, class, why).ok_or_else(|| pending(why)),
        Some(FactValue::Absent) | None => {
            let message = [
                "fileSystemTags needs fact file-systems, which cluster-operator ",
                &request.host_version,
                " does not give",
            ];
            Err(Stop::Unsupported(Diagnostic::error("UnsupportedHost", TAGS, message.concat())))
        }
    }
}

/// The one that has the tags.
fn found(request: &Request<Config>, class: &StorageClass, region: &str) -> Result<Chosen, Stop> {
    let mut all: Vec<facts::FileSystem> = request.fact(facts::FILE_SYSTEMS)?;
    all.retain(|it| has_tags(it, &request.config));
    match all.as_slice() {
        [] => Err(invalid("NoFileSystem", none(&request.config, region))),
        [one] => Ok(Chosen { id: one.id.clone(), warning: None }),
        several => match installed(request, class)?.filter(|id| several.iter().any(|it| it.id == *id)) {
            Some(id) => {
                let others = names(several.iter().filter(|it| it.id != id));
                let message = [
                    "volumes are made on ",
                    &id,
                    " as before, although others have these tags too: ",
                    &others,
                ]
                .concat();
                Ok(Chosen { warning: Some(Diagnostic::warning("SeveralFileSystems", TAGS, message)), id })
            }
            None => {
                let message = [
                    "several file systems have these tags: ",
                    &names(several.iter()),
                    "; give the id of one as fileSystemID in place of fileSystemTags, or tags that only one \
                     has",
                ];
                Err(invalid("SeveralFileSystems", message.concat()))
            }
        },
    }
}

/// Whether it is there to stay and has all the tags.
fn has_tags(file_system: &facts::FileSystem, config: &Config) -> bool {
    let stays = !["deleting", "deleted"].contains(&file_system.state.as_str());
    stays && config.file_system_tags.iter().all(|(key, value)| file_system.tags.get(key) == Some(value))
}

/// The file system of the class that is there. A host that does not tell which classes there are has none to
/// tell of.
fn installed(request: &Request<Config>, class: &StorageClass) -> Result<Option<String>, Stop> {
    let classes: Vec<facts::StorageClass> =
        request.optional_fact(facts::STORAGE_CLASSES)?.unwrap_or_default();
    let ours = classes.into_iter().find(|it| it.name == class.name() && it.provisioner == DRIVER.name);
    Ok(ours.and_then(|mut it| it.parameters.remove("fileSystemId")))
}

/// When it cannot be known which file system has the tags, the one that was found by these very tags before.
fn kept(request: &Request<Config>, class: &StorageClass, why: &str) -> Option<Chosen> {
    let before = request.previous_config.as_ref()?.get("fileSystemTags")?;
    if *before != json!(request.config.file_system_tags) {
        return None;
    }
    let id = installed(request, class).ok()??;
    let message = [unknown(why).as_str(), "; volumes are made on ", &id, " as before"].concat();
    Some(Chosen { id, warning: Some(Diagnostic::warning("FileSystemsUnknown", TAGS, message)) })
}

fn unknown(why: &str) -> String {
    ["the file systems that have these tags could not be looked for: ", why].concat()
}

fn denied(why: &str) -> Stop {
    let message =
        [unknown(why).as_str(), "; grant it, or name the file system with fileSystemID, which does without"]
            .concat();
    Stop::Unsupported(Diagnostic::error("FileSystemsDenied", TAGS, message))
}

fn none(config: &Config, region: &str) -> String {
    let tags: Vec<String> =
        config.file_system_tags.iter().map(|(key, value)| [key.as_str(), "=", value].concat()).collect();
    let tags = tags.join(", ");
    [
        "no file system in ",
        region,
        " has the tags ",
        &tags,
        "; create or tag one, or name one with fileSystemID",
    ]
    .concat()
}

/// Ids with names, some of them if they are many.
fn names<'a>(all: impl Iterator<Item = &'a facts::FileSystem>) -> String {
    let name = |it: &facts::FileSystem| match it.name.as_str() {
        "" => it.id.clone(),
        name => [it.id.as_str(), " (", name, ")"].concat(),
    };
    let all: Vec<String> = all.map(name).collect();
    match all.len().checked_sub(NAMED) {
        None | Some(0) => all.join(", "),
        Some(more) => [all[..NAMED].join(", ").as_str(), " and ", &more.to_string(), " more"].concat(),
    }
}

fn invalid(code: &str, message: String) -> Stop {
    Stop::Invalid(vec![Diagnostic::error(code, TAGS, message)])
}

fn pending(why: &str) -> Stop {
    let (code, path) = ("FileSystemsUnknown".to_owned(), TAGS.to_owned());
    Stop::Pending(vec![Diagnostic { severity: Severity::Info, code, path, message: unknown(why) }])
}
