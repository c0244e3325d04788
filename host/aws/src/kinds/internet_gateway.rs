//! Internet gateways. Made first, attached by an update.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{distinct, pages, tag_specification, tags};
use crate::errors::Failure;
use crate::kind::{AwsKind, Change, Creation, id_of};
use crate::pending_writes::{changed, gone, made};
use aws_sdk_ec2::types::{Filter, InternetGateway as AwsInternetGateway, ResourceType};
use model::{FoundInternetGateway, Ids, InternetGateway, Read, Vpc};

impl AwsKind for InternetGateway {
    type Found = FoundInternetGateway;
    const ID_PREFIX: &'static str = "igw-";
    const ID_FILTER: &'static str = "internet-gateway-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            let page = pages!(
                api,
                "ec2:DescribeInternetGateways",
                describe_internet_gateways.set_filters(filters),
                1000,
                internet_gateways
            );
            res.extend(page.into_iter().filter_map(found));
        }
        Ok(distinct(res, |it| &it.id))
    }

    /// AWS takes no token for it: exactly one attempt.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:CreateInternetGateway";
        let call = region.api.ec2_once.create_internet_gateway();
        let call = call.tag_specifications(tag_specification(ResourceType::InternetGateway, with.tags));
        let answer = region.api.write_until(with.until, ACTION, call.send()).await?;
        let mut new = answer.internet_gateway.and_then(found).ok_or_else(|| Failure::incomplete(ACTION))?;
        new.tags.extend(with.tags.clone());
        region.record(Read::InternetGateways, made(new));
        Ok(())
    }

    /// Attaches it.
    async fn update(&self, region: &Context, _: &Self, with: Change<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:AttachInternetGateway";
        let vpc = id_of(ACTION, with.ids, &Vpc::key(&self.vpc))?.to_owned();
        let call = region.api.ec2.attach_internet_gateway().internet_gateway_id(with.id).vpc_id(&vpc);
        match region.api.write(ACTION, call.send()).await {
            // Attached by a first try whose answer was lost, or to something else: the next poll says so.
            Err(failure) if failure.is("Resource.AlreadyAssociated") => region.doubt(Read::InternetGateways),
            Err(failure) => return Err(failure),
            Ok(_) => {}
        }
        region.record(
            Read::InternetGateways,
            changed::<FoundInternetGateway>(with.id, move |it| it.vpc_id = Some(vpc.clone())),
        );
        Ok(())
    }

    /// Detaches it from where it is, then removes it.
    async fn delete(&self, region: &Context, id: &str, ids: &Ids) -> Result<(), Failure> {
        let shown = region.snapshot();
        let attached =
            shown.internet_gateways.iter().find(|it| it.id == id).and_then(|it| it.vpc_id.as_deref());
        if let Some(vpc) = attached.or(ids.get(&Vpc::key(&self.vpc)).map(String::as_str)) {
            let call = region.api.ec2.detach_internet_gateway().internet_gateway_id(id).vpc_id(vpc);
            match region.api.write("ec2:DetachInternetGateway", call.send()).await.map(drop) {
                Err(failure) if failure.is("Gateway.NotAttached") => {}
                other => region.gone_is_done(id, other)?,
            }
            region.record(Read::InternetGateways, changed::<FoundInternetGateway>(id, |it| it.vpc_id = None));
        }
        let call = region.api.ec2.delete_internet_gateway().internet_gateway_id(id);
        region
            .gone_is_done(id, region.api.write("ec2:DeleteInternetGateway", call.send()).await.map(drop))?;
        region.record(Read::InternetGateways, gone::<FoundInternetGateway>(id));
        Ok(())
    }
}

fn found(gateway: AwsInternetGateway) -> Option<FoundInternetGateway> {
    let vpc_id = gateway.attachments.unwrap_or_default().into_iter().find_map(|it| it.vpc_id);
    Some(FoundInternetGateway { id: gateway.internet_gateway_id?, vpc_id, tags: tags(gateway.tags) })
}
