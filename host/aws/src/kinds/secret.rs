//! Bootstrap data in Secrets Manager, in parts. What they hold reaches no log and no error.

use aws_sdk_secretsmanager::primitives::Blob;
use aws_sdk_secretsmanager::types::Tag;
use futures::future::join_all;
use model::{Secret, Sensitive, Tags};

use crate::errors::{Failure, gone_is_done};
use crate::region::Inner;

/// Makes all parts. One that is there was made by a try whose answer was lost: the prefix is used once.
pub(crate) async fn create(region: &Inner, secret: &Secret, with: &Tags) -> Result<(), Failure> {
    let parts = secret
        .parts
        .iter()
        .enumerate()
        .map(|(index, part)| create_part(region, format!("{}-{index}", secret.prefix), part, with));
    join_all(parts).await.into_iter().collect()
}

async fn create_part(region: &Inner, name: String, part: &Sensitive, with: &Tags) -> Result<(), Failure> {
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

/// Removes all parts for good, without the usual weeks of waiting.
pub(crate) async fn delete(region: &Inner, secret: &Secret) -> Result<(), Failure> {
    let parts =
        (0..secret.count).map(|index| {
            let call = region
                .api
                .secrets
                .delete_secret()
                .secret_id(format!("{}-{index}", secret.prefix))
                .force_delete_without_recovery(true);
            async move {
                gone_is_done(region.api.write("secretsmanager:DeleteSecret", call.send()).await.map(drop))
            }
        });
    join_all(parts).await.into_iter().collect()
}
