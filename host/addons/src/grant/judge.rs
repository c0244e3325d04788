//! One step of a plan before the judge: what it is allowed by, where in it the judge is, and what was denied.

use crds::plugin_module::{Grants, ObjectGrant, PodGrants};
use serde_json::{Map, Value};

use super::cover::{self, At};
use super::denial::{Denial, named};

/// Denials after which the judge stops: such a plan is refused anyway.
const MOST: usize = 1000;

/// Where in an object the judge is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Segment<'a> {
    Field(&'a str),
    Index(usize),
}

/// The object that is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub kind: &'a str,
    pub namespace: Option<&'a str>,
    /// Whether Pods in it are made as they are; others are merged into Pods of somebody else.
    pub makes_pods: bool,
    /// The Pod that a field is in.
    pub pod: Option<&'a Map<String, Value>>,
    /// What the field is in.
    pub parent: &'a Map<String, Value>,
}

/// A step that is judged.
pub(super) struct Judge<'a> {
    pub grants: &'a Grants,
    step: &'a str,
    object: Option<String>,
    path: Vec<Segment<'a>>,
    denials: Vec<Denial>,
}

impl<'a> Judge<'a> {
    pub fn new(grants: &'a Grants) -> Judge<'a> {
        Judge { grants, step: "", object: None, path: Vec::new(), denials: Vec::new() }
    }

    pub fn begin_step(&mut self, id: &'a str) {
        self.step = id;
        self.object = None;
        self.path.clear();
    }

    pub fn begin_object(&mut self, (_, kind, namespace, name): At<'_>) {
        let place = namespace.map_or(String::new(), |it| format!("{}/", named(it)));
        self.object = Some(format!("{} {place}{}", named(kind), named(name)));
        self.path.clear();
    }

    /// Whether so much was denied that nobody would read more.
    pub fn is_done(&self) -> bool {
        self.denials.len() >= MOST
    }

    pub fn denials(self) -> Vec<Denial> {
        self.denials
    }

    /// Judges a part of the object.
    pub fn within(&mut self, segment: Segment<'a>, judge: impl FnOnce(&mut Self)) {
        if self.is_done() {
            return;
        }
        self.path.push(segment);
        judge(self);
        self.path.pop();
    }

    /// Where the judge is, such as `spec.containers[0].image`.
    pub fn path(&self) -> String {
        let mut res = String::new();
        for segment in &self.path {
            match segment {
                Segment::Index(place) => res.push_str(&format!("[{place}]")),
                Segment::Field(name) => {
                    if !res.is_empty() {
                        res.push('.');
                    }
                    res.push_str(&named(name));
                }
            }
        }
        res
    }

    /// The name of the field that the judge is at.
    pub fn field(&self) -> &'a str {
        let name = |it: &Segment<'a>| match it {
            Segment::Field(name) => Some(*name),
            Segment::Index(_) => None,
        };
        self.path.iter().rev().find_map(name).unwrap_or_default()
    }

    /// The name of the field that the one is in that the judge is at.
    pub fn field_above(&self) -> &'a str {
        match self.path.as_slice() {
            [.., Segment::Field(above), Segment::Field(_)] => above,
            _ => "",
        }
    }

    /// Denies something; `grant` would grant it.
    pub fn deny(&mut self, rule: &'static str, message: String, grant: impl Into<Option<Grants>>) {
        if self.is_done() {
            return;
        }
        let (step, object) = (self.step.to_owned(), self.object.clone());
        let denial = Denial { step, object, rule, message, grant: grant.into().map(Box::new) };
        // Each container says the same of its image.
        if !self.denials.contains(&denial) {
            self.denials.push(denial);
        }
    }

    /// Denies a field of a Pod unless it is granted.
    pub fn needs_of_pods(
        &mut self,
        rule: &'static str,
        is_granted: impl FnOnce(&PodGrants) -> bool,
        what: &str,
        grant: impl FnOnce(&mut PodGrants),
    ) {
        if !is_granted(&self.grants.pods) {
            let mut needed = Grants::default();
            grant(&mut needed.pods);
            let path = self.path();
            let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
            self.deny(rule, format!("{at}{what} is not granted"), needed);
        }
    }

    /// Denies a field of a Pod unless its name is granted.
    pub fn needs_pod_field(&mut self, name: &str) {
        let what = format!("{name} of a Pod");
        self.needs_of_pods(
            "pod fields",
            |pods| pods.fields.iter().any(|it| it == name),
            &what,
            |pods| pods.fields.push(name.to_owned()),
        );
    }

    /// Denies a field of another object unless its name is granted.
    pub fn needs_field(&mut self, name: &str) {
        if !self.grants.fields.iter().any(|it| it == name) {
            let message = format!("{}: {name} is not granted", self.path());
            self.deny("fields", message, Grants { fields: vec![name.to_owned()], ..Grants::default() });
        }
    }

    /// Denies an object that is not the plugin's to apply and delete.
    pub fn needs_object(&mut self, at: At<'_>) -> bool {
        let is_granted = cover::covers(&self.grants.objects, at);
        self.deny_object(is_granted, at, |objects| Grants { objects, ..Grants::default() })
    }

    /// Denies an object that the plugin may not look at, or use in its Pods.
    pub fn needs_read(&mut self, at: At<'_>) -> bool {
        let (_, kind, namespace, name) = at;
        let is_granted = cover::covers(&self.grants.objects, at)
            || cover::covers(&self.grants.reads, at)
            || kind == "Secret" && cover::covers_certificate(self.grants, namespace, name);
        self.deny_object(is_granted, at, |reads| Grants { reads, ..Grants::default() })
    }

    /// Denies an object unless it is granted.
    pub fn deny_object(
        &mut self,
        is_granted: bool,
        at: At<'_>,
        grant: impl FnOnce(Vec<ObjectGrant>) -> Grants,
    ) -> bool {
        if !is_granted {
            let what = object_text(at);
            match cover::nobodys(at) {
                Some(why) => self.deny("objects", format!("{what} is not granted: {why}"), None),
                None => self.deny("objects", format!("{what} is not granted"), grant(vec![object_grant(at)])),
            }
        }
        is_granted
    }
}

/// The grant for one object.
pub(super) fn object_grant((api_version, kind, namespace, name): At<'_>) -> ObjectGrant {
    ObjectGrant {
        group: cover::group_of(api_version).to_owned(),
        kinds: vec![kind.to_owned()],
        namespaces: namespace.map(str::to_owned).into_iter().collect(),
        names: vec![name.to_owned()],
        unread: false,
    }
}

fn object_text((api_version, kind, namespace, name): At<'_>) -> String {
    let place = namespace.map_or(String::new(), |it| format!(" in namespace {}", named(it)));
    let of = if api_version.is_empty() { "no API".to_owned() } else { named(api_version) };
    format!("{} {} of {of}{place}", named(kind), named(name))
}
