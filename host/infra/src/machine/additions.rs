//! What the user adds to a machine's instance, and takes away again: groups and tags. Everything else of an
//! instance stays as it was made, and what others put on it is left alone.

use std::collections::BTreeSet;

use super::Input;
use model::{Applied, Instance, Invalid, Observed, SecurityGroup, Tags};

/// The groups that an instance should have: those that it has, with what the user added since and without
/// what he took away. `core`: roles of the groups that it has in any case.
///
/// # Errors
/// Nothing would be left.
pub(super) fn regrouped(
    input: &Input<'_>,
    observed: &Observed,
    instance: &Instance,
    desired: &BTreeSet<String>,
    core: &BTreeSet<String>,
) -> Result<Instance, Invalid> {
    let is_of =
        |role: &String, id: &String| observed.get(&SecurityGroup::key(role)).is_some_and(|it| it.id == *id);
    let taken = |id: &&String| !desired.contains(*id) && !core.iter().any(|role| is_of(role, id));
    let removed_groups: BTreeSet<String> =
        input.record.applied.groups.iter().filter(taken).cloned().collect();
    let stays = |role: &&String| !removed_groups.iter().any(|id| is_of(role, id));
    let groups: BTreeSet<String> = instance.groups.iter().filter(stays).cloned().collect();
    // A group of the cluster that the user names too is seen by its role.
    let added = |id: &&String| !groups.iter().any(|role| is_of(role, id));
    let additional_groups: BTreeSet<String> = desired.iter().filter(added).cloned().collect();
    let others = instance.additional_groups.iter().any(|it| !removed_groups.contains(it));
    if groups.is_empty() && additional_groups.is_empty() && !others && !removed_groups.is_empty() {
        let message = "an instance needs a security group; name another one before the last is taken away";
        return Err(Invalid::new("spec.additionalSecurityGroups", message));
    }
    Ok(Instance { groups, additional_groups, removed_groups, launch: None, status: None, ..instance.clone() })
}

/// Keys of tags that the user took away. `tags`: all that the instance should carry.
pub(super) fn untagged(input: &Input<'_>, tags: &Tags) -> BTreeSet<String> {
    input.record.applied.tags.keys().filter(|key| !tags.contains_key(*key)).cloned().collect()
}

/// What is written down before it is carried out: what is wanted now, and what was wanted once and was not
/// taken away yet. `groups`: all of either kind; `tags`: all that the instance should carry.
pub(super) fn applied(input: &Input<'_>, groups: impl IntoIterator<Item = String>, tags: &Tags) -> Applied {
    let before = &input.record.applied.tags;
    let mut res = Applied { groups: groups.into_iter().collect(), tags: users(input, tags) };
    res.tags.extend(
        untagged(input, tags)
            .into_iter()
            .filter_map(|key| before.get_key_value(&key))
            .map(|(k, v)| (k.clone(), v.clone())),
    );
    res
}

/// Those of the tags that the user of the machine or of its cluster asked for.
fn users(input: &Input<'_>, tags: &Tags) -> Tags {
    let asked = [&input.aws_machine.spec.additional_tags, &input.aws_cluster.spec.additional_tags];
    let is_users = |(key, value): &(&String, &String)| asked.iter().any(|it| it.get(*key) == Some(*value));
    tags.iter().filter(is_users).map(|(key, value)| (key.clone(), value.clone())).collect()
}
