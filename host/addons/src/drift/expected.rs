//! Who would have what of an object if it were applied, told without asking the API server: fields of the object,
//! in the shape in which those who have something of it have them. Which lists have keys, and which maps are
//! one thing, is nowhere said but there.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Change, Compared, Entry, Writers, compare, drift};
use crate::ObjectRef;

/// What of an object is no field that anybody has.
const IDENTITY: [&[&str]; 4] =
    [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"]];

/// Who would have what of the object if this manager applied `object` with force. A field that nobody has is
/// named without what is in it.
fn expected(object: &Value, observed: &Writers, manager: &str) -> Writers {
    let mut object = object.clone();
    for path in IDENTITY {
        let (last, above) = (path[path.len() - 1], &path[..path.len() - 1]);
        let holder = above.iter().try_fold(&mut object, |at, name| at.get_mut(*name));
        if let Some(fields) = holder.and_then(Value::as_object_mut) {
            fields.remove(last);
        }
    }
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| name != "metadata" || value.as_object().is_some_and(|it| !it.is_empty()));
    }
    let sets: Vec<&Value> = observed.entries.iter().map(|entry| &entry.fields).collect();
    let ours = Entry {
        manager: manager.to_owned(),
        is_applied: true,
        subresource: String::new(),
        time: String::new(),
        fields: fields(&object, &sets),
    };
    Writers { uid: observed.uid.clone(), is_deleting: false, entries: vec![ours] }
}

/// What somebody did to an applied object, for people; `None` where it is as it was applied, or where only an
/// autoscaler has what is different. `mark` is what was written down of it, if anything was.
pub fn drifted(
    object: &Value,
    reference: &ObjectRef,
    mark: Option<&str>,
    observed: Option<&Writers>,
    manager: &str,
) -> Option<String> {
    if let (None, Some(_)) = (mark, observed) {
        return Some(format!("what is ours in {reference} was never written down"));
    }
    let mark = mark.unwrap_or_default();
    match compare(mark, observed, manager) {
        Compared::Same => return None,
        Compared::Going => return Some(format!("{reference} is being deleted")),
        Compared::Different => (),
    }
    let would = observed.map(|observed| expected(object, observed, manager));
    let drift = drift(mark, observed, would.as_ref(), manager);
    (drift.change != Change::Scaled).then(|| drift.told(reference))
}

/// The set of a value's fields; `sets` is what others have at its place.
fn fields(value: &Value, sets: &[&Value]) -> Value {
    let mut res = Map::new();
    match value {
        Value::Object(content) if has_any(sets, "f:") => {
            for (name, inner) in content.iter().filter(|(_, inner)| !inner.is_null()) {
                let name = format!("f:{name}");
                let inner = fields(inner, &within(sets, &name));
                res.insert(name, inner);
            }
        }
        Value::Array(elements) if has_any(sets, "k:") => {
            for element in elements {
                let Some(name) = key(element, sets) else { continue };
                let inner = fields(element, &within(sets, &name));
                res.insert(name, inner);
            }
        }
        Value::Array(elements) if has_any(sets, "v:") => {
            res.extend(elements.iter().map(|element| (format!("v:{element}"), Value::Object(Map::new()))));
        }
        _ => (),
    }
    Value::Object(res)
}

fn within<'a>(sets: &[&'a Value], name: &str) -> Vec<&'a Value> {
    sets.iter().filter_map(|set| set.get(name)).collect()
}

fn has_any(sets: &[&Value], prefix: &str) -> bool {
    names(sets).any(|name| name.starts_with(prefix))
}

fn names<'a>(sets: &[&'a Value]) -> impl Iterator<Item = &'a String> {
    sets.iter().filter_map(|set| set.as_object()).flat_map(Map::keys)
}

/// The name of an element among those of its list: the key that agrees with it in all that the element says, or
/// else one made of the same fields. The API server fills in what an element leaves out.
fn key(element: &Value, sets: &[&Value]) -> Option<String> {
    let known: BTreeSet<&String> = names(sets).filter(|name| name.starts_with("k:")).collect();
    let parsed = |name: &str| serde_json::from_str::<Map<String, Value>>(name.strip_prefix("k:")?).ok();
    let agrees = |name: &str| {
        let Some(key) = parsed(name) else { return false };
        let mut said = key.iter().filter_map(|(field, value)| Some((element.get(field)?, value))).peekable();
        said.peek().is_some() && said.all(|(own, value)| own == value)
    };
    if let Some(found) = known.iter().find(|name| agrees(name)) {
        return Some((*found).clone());
    }
    let fields = known.iter().find_map(|name| parsed(name))?;
    let own: Map<String, Value> =
        fields.keys().filter_map(|field| Some((field.clone(), element.get(field)?.clone()))).collect();
    Some(format!("k:{}", Value::Object(own)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANAGER: &str = "cluster-operator-a";

    fn applied() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "kube-system", "labels": {"app": "a"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": {"spec": {
                "containers": [{"name": "main", "image": "a:1", "args": ["--b"], "ports": [{"containerPort": 80}],
                    "securityContext": {}}]}}}})
    }

    /// What an API server says of the object after it was applied: the selector is one thing, containers and
    /// ports have keys.
    fn ours() -> Value {
        let port = json!({".": {}, "f:containerPort": {}});
        let main = json!({".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:securityContext": {},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": port}});
        json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": main}}}}})
    }

    fn observed(ours: &Value, theirs: Option<(&str, Value)>) -> Writers {
        let entry = |manager: &str, operation: &str, subresource: &str, fields: &Value| {
            json!({"manager": manager, "operation": operation, "subresource": subresource, "time": "2026-01-01T00:00:00Z",
                "fieldsV1": fields})
        };
        let mut all = vec![entry(MANAGER, "Apply", "", ours)];
        all.extend(theirs.map(|(who, set)| {
            let subresource = if who == "autoscaler" { "scale" } else { "" };
            entry(who, "Update", subresource, &set)
        }));
        Writers::of(&json!({"metadata": {"uid": "1", "managedFields": all}}))
    }

    fn changed(mut set: Value, lost: &[&str], theirs: Option<(&str, Value)>) -> String {
        let mark = observed(&set, None).mark(MANAGER);
        for pointer in lost {
            let (above, name) = pointer.rsplit_once('|').expect("a place");
            let above =
                if above.is_empty() { &mut set } else { set.pointer_mut(above).expect("it is there") };
            above.as_object_mut().expect("fields").remove(name).expect("it was there");
        }
        let observed = observed(&set, theirs);
        let would = expected(&applied(), &observed, MANAGER);
        let found = drift(&mark, Some(&observed), Some(&would), MANAGER);
        match found.change {
            Change::Fields(fields) => format!("{fields} by {}", found.by),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn fields_are_expected_in_the_shape_that_the_api_server_gives_them() {
        let would = expected(&applied(), &observed(&ours(), None), MANAGER);
        let leaves = super::super::fields::leaves(&would.entries[0].fields, Some(&ours()));
        assert_eq!(leaves, []);
        let back = super::super::fields::leaves(&ours(), Some(&would.entries[0].fields));
        assert_eq!(back, []);
    }

    #[test]
    fn an_object_with_nothing_but_a_name_has_no_metadata_of_ours() {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "1"}});
        let taken = observed(&json!({}), Some(("kubectl-patch", json!({"f:data": {"f:b": {}}}))));
        let mark = observed(&json!({"f:data": {"f:b": {}}}), None).mark(MANAGER);
        let reference = ObjectRef::of(&object).expect("a name");
        let told = |mark| drifted(&object, &reference, mark, Some(&taken), MANAGER);
        assert_eq!(
            told(Some(&mark)).as_deref(),
            Some(".data.b of ConfigMap a was changed by \"kubectl-patch\"")
        );
        assert_eq!(told(None).as_deref(), Some("what is ours in ConfigMap a was never written down"));
        assert_eq!(
            drifted(&object, &reference, None, None, MANAGER).as_deref(),
            Some("ConfigMap a was deleted")
        );
    }

    #[test]
    fn what_somebody_took_or_removed_is_named() {
        let main = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}";
        let image = format!("{main}|f:image");
        let theirs = json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"main\"}": {"f:image": {}}}}}}});
        assert_eq!(
            changed(ours(), &[&image], Some(("kubectl-edit", theirs))),
            ".spec.template.spec.containers[name=main].image by \"kubectl-edit\""
        );
        assert_eq!(changed(ours(), &["/f:spec|f:selector"], None), ".spec.selector by ");
        let scaled = json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(changed(ours(), &["/f:spec|f:replicas"], Some(("autoscaler", scaled))), "Scaled");
    }
}
