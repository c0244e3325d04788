//! The order in which add-ons are installed: which waits for which, by what users and plugins say. A circle is
//! refused, since nothing of it could ever begin.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Slot;

/// Plugins and capabilities that one plugin names at most, each with so many bytes.
const MOST: usize = 16;
const LONGEST: usize = 253;

/// What plugins call the slots that they need.
const CAPABILITIES: [(&str, Slot); 4] = [
    ("cloud-provider", Slot::CloudProvider),
    ("cni", Slot::Networking),
    ("csi", Slot::Storage),
    ("ingress", Slot::Ingress),
];

/// What users call the slots that an add-on comes after.
const SLOTS: [(&str, Slot); 4] = [
    ("cloudProvider", Slot::CloudProvider),
    ("networking", Slot::Networking),
    ("storage", Slot::Storage),
    ("ingress", Slot::Ingress),
];

/// What a plugin says in its descriptor that it needs of other add-ons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Names of add-ons of the ClusterPlugin.
    pub plugins: Vec<String>,
    /// Such as `cni`.
    pub capabilities: Vec<String>,
}

impl Requirements {
    /// What stands in `requires` of a descriptor. What is no text there, or is too long, is left out.
    pub fn of(requires: &Value) -> Requirements {
        let texts = |field: &str| {
            let all = requires.get(field).and_then(Value::as_array).into_iter().flatten();
            let texts = all.filter_map(Value::as_str).filter(|text| text.len() <= LONGEST);
            texts.take(MOST).map(str::to_owned).collect()
        };
        Requirements { plugins: texts("plugins"), capabilities: texts("capabilities") }
    }
}

/// An add-on that has its place in the order.
#[derive(Clone, Debug)]
pub struct Ordered<'a> {
    /// Of the add-on, in the ClusterPlugin.
    pub name: &'a str,
    /// The slot that it fills; `None` for one beside the slots.
    pub slot: Option<Slot>,
    /// Slots and add-ons that the user wants to run before.
    pub after: &'a [String],
    /// What its plugin needs.
    pub requires: &'a Requirements,
}

/// What comes before an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// These have to run.
    AddOns(Vec<String>),
    /// It can never begin: it comes after itself, by way of these.
    Circle(Vec<String>),
    /// It needs what nobody asks for; in words.
    Missing(String),
}

/// What comes before each add-on, by its name. A slot that nobody fills is not waited for: what does its work
/// may have been brought by the user.
pub fn order(all: &[Ordered<'_>]) -> BTreeMap<String, Before> {
    let before: Vec<Result<Vec<usize>, String>> = all.iter().map(|it| predecessors(it, all)).collect();
    let places = |place: usize| before[place].as_deref().unwrap_or_default();
    let name = |place: &usize| all[*place].name.to_owned();
    let of = |place: usize| match &before[place] {
        Err(missing) => Before::Missing(missing.clone()),
        Ok(direct) => match way_back(place, &places) {
            Some(circle) => Before::Circle(circle.iter().map(name).collect()),
            None => Before::AddOns(direct.iter().map(name).collect()),
        },
    };
    all.iter().enumerate().map(|(place, it)| (it.name.to_owned(), of(place))).collect()
}

fn predecessors(it: &Ordered<'_>, all: &[Ordered<'_>]) -> Result<Vec<usize>, String> {
    let mut res = Vec::new();
    let others = || all.iter().enumerate().filter(|(_, other)| other.name != it.name);
    let slot_of =
        |known: &[(&str, Slot)], word: &str| known.iter().find(|(name, _)| *name == word).map(|it| it.1);
    let in_slot =
        |slot: Slot| others().filter(move |(_, other)| other.slot == Some(slot)).map(|(place, _)| place);
    let named = |word: &str| all.iter().position(|other| other.name == word);
    for word in &it.requires.capabilities {
        let slot = slot_of(&CAPABILITIES, word);
        let slot = slot.ok_or_else(|| format!("its plugin needs {word:?}, which no add-on can be"))?;
        res.extend(in_slot(slot));
    }
    for word in &it.requires.plugins {
        res.push(
            named(word).ok_or_else(|| format!("its plugin needs add-on {word:?}, which is not asked for"))?,
        );
    }
    for word in it.after {
        match (slot_of(&SLOTS, word), named(word)) {
            (Some(slot), _) => res.extend(in_slot(slot)),
            (None, Some(place)) => res.push(place),
            (None, None) => return Err(format!("it comes after {word:?}, which is not asked for")),
        }
    }
    res.sort_unstable();
    res.dedup();
    Ok(res)
}

/// The way from what comes before an add-on back to itself, if there is one.
fn way_back<'a>(start: usize, before: &impl Fn(usize) -> &'a [usize]) -> Option<Vec<usize>> {
    let (mut ways, mut seen) = (vec![vec![start]], Vec::new());
    while let Some(way) = ways.pop() {
        for next in before(*way.last()?) {
            if *next == start {
                return Some(way.into_iter().chain([start]).collect());
            }
            if !seen.contains(next) {
                seen.push(*next);
                ways.push(way.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct AddOn {
        name: &'static str,
        slot: Option<Slot>,
        after: Vec<String>,
        requires: Requirements,
    }

    fn add_on(name: &'static str, slot: Option<Slot>, after: &[&str], requires: Value) -> AddOn {
        let after = after.iter().map(|it| (*it).to_owned()).collect();
        AddOn { name, slot, after, requires: Requirements::of(&requires) }
    }

    fn said(all: &[AddOn]) -> String {
        let ordered: Vec<Ordered<'_>> = all
            .iter()
            .map(|it| Ordered { name: it.name, slot: it.slot, after: &it.after, requires: &it.requires })
            .collect();
        let line = |(name, before): (String, Before)| match before {
            Before::AddOns(names) => format!("{name}: {}\n", names.join(" ")),
            Before::Circle(names) => format!("{name}: circle {}\n", names.join(" -> ")),
            Before::Missing(what) => format!("{name}: {what}\n"),
        };
        order(&ordered).into_iter().map(line).collect()
    }

    #[test]
    fn an_add_on_waits_for_what_it_needs() {
        let none = || json!({});
        expect_test::expect![[r#"
            agent: calico metrics dashboards
            calico: 
            dashboards: metrics
            ebs: calico
            efs: 
            metrics: ebs efs
        "#]]
        .assert_eq(&said(&[
            add_on("calico", Some(Slot::Networking), &[], none()),
            add_on("ebs", Some(Slot::Storage), &[], json!({"capabilities": ["cni"]})),
            add_on("efs", Some(Slot::Storage), &[], none()),
            add_on("metrics", None, &[], json!({"capabilities": ["csi"]})),
            add_on("dashboards", None, &["metrics"], none()),
            add_on("agent", None, &["networking", "dashboards"], json!({"plugins": ["metrics"]})),
        ]));
    }

    #[test]
    fn a_slot_that_nobody_fills_is_not_waited_for() {
        assert_eq!(said(&[add_on("a", None, &["networking"], json!({"capabilities": ["cni"]}))]), "a: \n");
    }

    #[test]
    fn a_circle_is_refused_with_its_names_and_holds_up_nobody_beside_it() {
        let all = [
            add_on("a", None, &["b"], json!({})),
            add_on("b", None, &[], json!({"plugins": ["c"]})),
            add_on("c", None, &["a"], json!({})),
            add_on("d", None, &[], json!({})),
            add_on("e", None, &["a"], json!({})),
            add_on("itself", None, &["itself"], json!({})),
        ];
        expect_test::expect![[r#"
            a: circle a -> b -> c -> a
            b: circle b -> c -> a -> b
            c: circle c -> a -> b -> c
            d: 
            e: a
            itself: circle itself -> itself
        "#]]
        .assert_eq(&said(&all));
    }

    #[test]
    fn two_in_one_slot_that_need_it_do_not_wait_for_themselves() {
        let needs = || json!({"capabilities": ["csi"]});
        expect_test::expect![[r#"
            ebs: 
            metrics: ebs
        "#]]
        .assert_eq(&said(&[
            add_on("ebs", Some(Slot::Storage), &[], needs()),
            add_on("metrics", None, &[], needs()),
        ]));
    }

    #[test]
    fn what_is_not_asked_for_is_named() {
        expect_test::expect![[r#"
            a: it comes after "x", which is not asked for
            b: its plugin needs add-on "y", which is not asked for
            c: its plugin needs "gpu", which no add-on can be
        "#]]
        .assert_eq(&said(&[
            add_on("a", None, &["x"], json!({})),
            add_on("b", None, &[], json!({"plugins": ["y"]})),
            add_on("c", None, &[], json!({"capabilities": ["gpu"]})),
        ]));
    }

    #[test]
    fn what_a_descriptor_says_is_bounded() {
        let many = Requirements::of(
            &json!({"plugins": vec!["a"; 100], "capabilities": [1, "x".repeat(300), "cni"]}),
        );
        assert_eq!((many.plugins.len(), many.capabilities), (MOST, vec!["cni".to_owned()]));
    }
}
