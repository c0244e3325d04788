//! A plan as text for people: one line for each thing to do, to wait for, and to be moved by somebody. It
//! never shows bootstrap data.

use std::fmt;

use crate::{Action, Listener, Plan, Resource, Rule, Source, Tags};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.actions {
            writeln!(f, "{action}")?;
        }
        for (key, reason) in &self.waiting {
            writeln!(f, "wait    {key}: {reason}")?;
        }
        for (key, reason) in &self.blocked {
            writeln!(f, "blocked {key}: {reason}")?;
        }
        for key in &self.close {
            writeln!(f, "close   {key}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        match self {
            Action::Create { is, .. } => write!(f, "create  {key}{}", details(is)),
            Action::Update { id, is, seen, .. } => write!(f, "update  {key} ({id}){}", changes(is, seen)),
            Action::Tag { id, tags, untag, .. } => {
                let untag: String = untag.iter().map(|it| format!(" -{it}")).collect();
                write!(f, "tag     {key} ({id}){}{untag}", Pairs(tags))
            }
            Action::Delete { id, .. } => write!(f, "delete  {key} ({id})"),
            Action::Confirm { id, .. } => write!(f, "confirm {key} ({id})"),
        }
    }
}

struct Pairs<'a>(&'a Tags);

impl fmt::Display for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

fn details(is: &Resource) -> String {
    match is {
        Resource::Vpc(it) => format!(" {}", it.cidr),
        Resource::Subnet(it) => {
            format!(" {} in {}, {}", it.cidr, it.zone, if it.public { "public" } else { "private" })
        }
        Resource::InternetGateway(_) | Resource::ElasticIp(_) | Resource::NetworkInterface(_) => {
            String::new()
        }
        Resource::NatGateway(it) => format!(" in {}", it.subnet),
        Resource::RouteTable(it) => {
            let route =
                it.default_route.as_ref().map(|key| format!(", 0.0.0.0/0 to {key}")).unwrap_or_default();
            format!(" for {}{route}", join(&it.subnets))
        }
        Resource::SecurityGroup(it) => format!(" {:?}", it.group_name),
        Resource::SecurityGroupRules(it) => {
            it.rules.iter().map(|rule| format!("\n          + {rule}")).collect()
        }
        Resource::LoadBalancer(it) => {
            let scheme = if it.internal { "internal" } else { "internet-facing" };
            let listener = it.listener.as_ref().map(listener).unwrap_or_default();
            let off =
                if it.leaving.is_empty() { String::new() } else { format!(", off {}", join(&it.leaving)) };
            format!(
                " {:?} ({:?}, {scheme}) in {}{off}, groups {}{listener}",
                it.aws_name,
                it.kind,
                join(&it.subnets),
                join(&it.groups)
            )
        }
        Resource::Secret(it) => format!(" {} parts", it.count),
        Resource::Instance(it) => {
            let launch = it
                .launch
                .as_ref()
                .map(|it| format!(" {} {}", it.instance_type, it.image))
                .unwrap_or_default();
            let removed: String = it.removed_groups.iter().map(|it| format!(" - {it}")).collect();
            format!(
                "{launch} in {}, groups {}{removed}",
                it.subnet,
                join(it.groups.iter().chain(&it.additional_groups))
            )
        }
        Resource::Target(it) => format!(" of {}", it.load_balancer),
    }
}

fn changes(is: &Resource, seen: &Resource) -> String {
    match (is, seen) {
        (Resource::SecurityGroupRules(want), Resource::SecurityGroupRules(seen)) => {
            let extra = if want.keep_unknown { Vec::new() } else { want.extra_in(seen) };
            let missing = want.missing_from(seen).into_iter().map(|rule| format!("\n          + {rule}"));
            missing.chain(extra.into_iter().map(|rule| format!("\n          - {rule}"))).collect()
        }
        _ => details(is),
    }
}

fn listener(listener: &Listener) -> String {
    let check = &listener.health_check;
    let path = check.path.as_deref().unwrap_or_default();
    let (every, within) = (check.interval_seconds, check.timeout_seconds);
    let (up, down) = (check.healthy_threshold, check.unhealthy_threshold);
    let checked = format!(
        "{}:{}{path} every {every} s within {within} s, {up} up {down} down",
        check.protocol, check.port
    );
    format!(", {} to {}, checked by {checked}", listener.port, listener.target_port)
}

fn join<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(" + ")
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.protocol)?;
        match (self.from_port, self.to_port) {
            (from, to) if from == to => write!(f, " {from}")?,
            (from, to) => write!(f, " {from}-{to}")?,
        }
        match &self.source {
            Source::Cidr(it) | Source::GroupId(it) | Source::PrefixList(it) => write!(f, " from {it}")?,
            Source::Group(it) => write!(f, " from group {it}")?,
        }
        write!(f, " ({})", self.description)
    }
}
