//! Bootstrap data in Secrets Manager, in parts. What they hold reaches no log and no error.

use crate::context::Context;
use crate::errors::{Failure, gone_is_done};
use crate::kind::{AwsKind, Creation};
use aws_sdk_secretsmanager::primitives::Blob;
use aws_sdk_secretsmanager::types::Tag;
use futures::future::join_all;
use model::{Ids, Secret, Sensitive, Tags};

impl AwsKind for Secret {
    type Found = ();

    /// Makes all parts. One that is there was made by a try whose answer was lost: the prefix is used once.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        let parts =
            self.parts.iter().enumerate().map(|(index, part)| {
                create_part(region, format!("{}-{index}", self.prefix), part, with.tags)
            });
        join_all(parts).await.into_iter().collect()
    }

    /// Removes all parts for good, without the usual weeks of waiting.
    async fn delete(&self, region: &Context, _: &str, _: &Ids) -> Result<(), Failure> {
        let parts = (0..self.count).map(|index| {
            let call = region
                .api
                .secrets
                .delete_secret()
                .secret_id(format!("{}-{index}", self.prefix))
                .force_delete_without_recovery(true);
            async move {
                gone_is_done(region.api.write("secretsmanager:DeleteSecret", call.send()).await.map(drop))
            }
        });
        join_all(parts).await.into_iter().collect()
    }
}

async fn create_part(region: &Context, name: String, part: &Sensitive, with: &Tags) -> Result<(), Failure> {
    let tags = with.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect();
    let call = region
        .api
        .secrets
        .create_secret()
        .name(name)
        .secret_binary(Blob::new(part.0.clone()))
        .set_tags(Some(tags));
    match region.api.write("secretsmanager:CreateSecret", call.send()).await {
        Err(failure) if failure.is("ResourceExistsException") => Ok(()),
        other => other.map(drop),
    }
}
