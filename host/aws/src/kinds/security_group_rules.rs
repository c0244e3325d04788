//! Ingress rules of one group: one call for all that is missing, one for all that is too much. Egress is left
//! as AWS makes it.

use crate::context::Context;
use crate::errors::{Failure, gone_is_done};
use crate::kind::{AwsKind, Change, id_of};
use crate::pending_writes::changed;
use aws_sdk_ec2::types::{IpPermission, IpRange, Ipv6Range, PrefixListId, UserIdGroupPair};
use futures::future::join_all;
use model::{
    FoundRule, FoundSecurityGroup, FoundSource, Ids, Read, Rule, SecurityGroup, SecurityGroupRules, Source,
    has_ports,
};
const AUTHORIZE: &str = "ec2:AuthorizeSecurityGroupIngress";
const REVOKE: &str = "ec2:RevokeSecurityGroupIngress";

impl AwsKind for SecurityGroupRules {
    type Found = ();

    async fn update(&self, region: &Context, observed: &Self, with: Change<'_>) -> Result<(), Failure> {
        let missing = found(&self.missing_from(observed), with.ids)?;
        authorize(region, with.id, missing).await?;
        if self.keep_unknown {
            return Ok(());
        }
        revoke(region, with.id, found(&self.extra_in(observed), with.ids)?).await
    }

    /// Revokes all ingress rules of the group, also those that came after the plan was made.
    async fn delete(&self, region: &Context, id: &str, ids: &Ids) -> Result<(), Failure> {
        let shown = region.snapshot();
        let all = match shown.security_groups.iter().find(|it| it.id == id) {
            Some(it) => it.rules.clone(),
            None => found(&self.rules.iter().cloned().collect::<Vec<_>>(), ids)?,
        };
        region.gone_is_done(id, revoke(region, id, all).await)
    }
}

async fn authorize(region: &Context, group: &str, rules: Vec<FoundRule>) -> Result<(), Failure> {
    if rules.is_empty() {
        return Ok(());
    }
    let send = |rules: &[FoundRule]| {
        let permissions = rules.iter().map(permission).collect();
        let call = region
            .api
            .ec2
            .authorize_security_group_ingress()
            .group_id(group)
            .set_ip_permissions(Some(permissions));
        async move { region.api.write(AUTHORIZE, call.send()).await.map(drop) }
    };
    match send(&rules).await {
        // One that is there already refuses them all.
        Err(failure) if failure.is("InvalidPermission.Duplicate") => {
            region.doubt(Read::SecurityGroups);
            for outcome in join_all(rules.iter().map(|it| send(std::slice::from_ref(it)))).await {
                match outcome {
                    Err(failure) if failure.is("InvalidPermission.Duplicate") => {}
                    other => other?,
                }
            }
        }
        other => other?,
    }
    let change = move |it: &mut FoundSecurityGroup| {
        for rule in &rules {
            if !it.rules.iter().any(|other| rule.same_traffic(other)) {
                it.rules.push(rule.clone());
            }
        }
    };
    region.record(Read::SecurityGroups, changed(group, change));
    Ok(())
}

/// Revokes ingress rules. Those that are gone are done.
pub(crate) async fn revoke(region: &Context, group: &str, rules: Vec<FoundRule>) -> Result<(), Failure> {
    if rules.is_empty() {
        return Ok(());
    }
    let send = |rules: &[FoundRule]| {
        let permissions = rules.iter().map(permission).collect();
        let call = region
            .api
            .ec2
            .revoke_security_group_ingress()
            .group_id(group)
            .set_ip_permissions(Some(permissions));
        async move { region.api.write(REVOKE, call.send()).await.map(drop) }
    };
    match send(&rules).await {
        // One that is gone already refuses them all.
        Err(failure) if failure.is("InvalidPermission.NotFound") => {
            region.doubt(Read::SecurityGroups);
            for outcome in join_all(rules.iter().map(|it| send(std::slice::from_ref(it)))).await {
                gone_is_done(outcome)?;
            }
        }
        other => other?,
    }
    let change = move |it: &mut FoundSecurityGroup| {
        it.rules.retain(|it| !rules.iter().any(|other| it.same_traffic(other)))
    };
    region.record(Read::SecurityGroups, changed(group, change));
    Ok(())
}

fn found(rules: &[Rule], ids: &Ids) -> Result<Vec<FoundRule>, Failure> {
    let source = |it: &Source| match it {
        Source::Cidr(cidr) => Ok(FoundSource::Cidr(cidr.clone())),
        Source::Group(role) => {
            Ok(FoundSource::GroupId(id_of(AUTHORIZE, ids, &SecurityGroup::key(role))?.to_owned()))
        }
        Source::GroupId(id) => Ok(FoundSource::GroupId(id.clone())),
        Source::PrefixList(id) => Ok(FoundSource::PrefixList(id.clone())),
    };
    let rule = |it: &Rule| {
        Ok(FoundRule {
            protocol: it.protocol.clone(),
            from_port: it.from_port,
            to_port: it.to_port,
            source: source(&it.source)?,
            description: it.description.clone(),
        })
    };
    rules.iter().map(rule).collect()
}

fn permission(rule: &FoundRule) -> IpPermission {
    let description = Some(rule.description.clone()).filter(|it| !it.is_empty());
    let res = IpPermission::builder().ip_protocol(&rule.protocol);
    // AWS refuses ports for all protocols, and has none for others such as IP in IP.
    let res =
        if has_ports(&rule.protocol) { res.from_port(rule.from_port).to_port(rule.to_port) } else { res };
    match &rule.source {
        FoundSource::Cidr(cidr) if cidr.contains(':') => {
            res.ipv6_ranges(Ipv6Range::builder().cidr_ipv6(cidr).set_description(description).build())
        }
        FoundSource::Cidr(cidr) => {
            res.ip_ranges(IpRange::builder().cidr_ip(cidr).set_description(description).build())
        }
        FoundSource::GroupId(id) => res.user_id_group_pairs(
            UserIdGroupPair::builder().group_id(id).set_description(description).build(),
        ),
        FoundSource::PrefixList(id) => res
            .prefix_list_ids(PrefixListId::builder().prefix_list_id(id).set_description(description).build()),
    }
    .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_in_ip_and_all_protocols_go_without_ports() {
        for (protocol, from) in [("4", None), ("-1", None), ("tcp", Some(179)), ("50", None)] {
            let rule = FoundRule {
                protocol: protocol.into(),
                from_port: 179,
                to_port: 179,
                source: FoundSource::Cidr("10.0.0.0/16".into()),
                description: String::new(),
            };
            assert_eq!(permission(&rule).from_port(), from, "{protocol}");
        }
    }

    #[test]
    fn ipv6_ranges_go_where_aws_wants_them() {
        let rule = FoundRule {
            protocol: "tcp".into(),
            from_port: 1,
            to_port: 1,
            source: FoundSource::Cidr("::/0".into()),
            description: String::new(),
        };
        assert_eq!(permission(&rule).ipv6_ranges().len(), 1);
        assert!(permission(&rule).ip_ranges().is_empty());
    }
}
