//! What the controller does in AWS as conditions of policies see it: which tags its requests set.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::versions::{ACTIONS, Needed};
use plugin_sdk::settings;
use plugin_sdk::steps::RoleAction;
use serde_json::Map;

/// The tags for access points as the driver reads them from its argument, when the user wants them there.
/// AWS's policy for the driver allows none but the driver's own.
pub fn tags_argument(config: &Config, tags: &BTreeMap<String, String>) -> Option<String> {
    settings::tags(tags, ':', ' ').filter(|_| config.tag_access_points)
}

/// What the controller's role must allow, sorted.
pub fn actions(config: &Config, tags: &BTreeMap<String, String>) -> Vec<RoleAction> {
    let mut set = Map::new();
    set.insert("efs.csi.aws.com/cluster".to_owned(), "true".into());
    if config.tag_access_points {
        for (key, value) in settings::flag_tags(tags, ':', ' ') {
            set.insert(key.clone(), value.as_str().into());
        }
    }
    let fixed_ids = config.storage_class.uid.is_some() && config.storage_class.gid.is_some();
    let mut all = Vec::new();
    for (name, needed) in ACTIONS {
        let action = RoleAction::new(name);
        match needed {
            Needed::Always => all.push(action),
            Needed::ToMake => all.push(action.sets(&set)),
            Needed::ToTag => all.push(action.sets(&set).of("CreateAccessPoint")),
            Needed::ForFixedIds if fixed_ids => all.push(action),
            Needed::ToMount if config.delete_directories => {
                all.push(action.only("to delete directories on a file system whose policy asks for IAM"));
            }
            Needed::ForFixedIds | Needed::ToMount => (),
        }
    }
    all
}
