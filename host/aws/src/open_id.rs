//! OIDC providers of IAM: what makes an account trust the tokens of an issuer. It never sets thumbprints: AWS
//! finds them itself.

use aws_sdk_iam::types::Tag;
use iam::check::Provider;
use iam::{partition, trust};
use model::finding::Reading;
use model::{Problem, Tags};

use crate::api::Api;
use crate::errors::{Failure, reading};
use crate::region::Region;

const GET: &str = "iam:GetOpenIDConnectProvider";
const CREATE: &str = "iam:CreateOpenIDConnectProvider";
const TAG: &str = "iam:TagOpenIDConnectProvider";
/// IAM's word for a provider of this URL being there.
const EXISTS: &str = "EntityAlreadyExists";

impl Region {
    /// One OIDC provider, read anew.
    pub async fn open_id_provider(&self, arn: &str) -> Reading<Provider> {
        read(&self.context.api, arn).await
    }

    /// Makes the OIDC provider of an issuer, which begins with `https://`. One that exists, is of this issuer
    /// and carries these tags counts as made, whatever its client ids are.
    ///
    /// # Errors
    /// AWS refused it, or one exists that is another's, or cannot be read.
    pub async fn create_open_id_provider(
        &self,
        issuer: &str,
        client_ids: &[String],
        tags: &Tags,
    ) -> Result<(), Problem> {
        let api = &self.context.api;
        let call = api.iam.create_open_id_connect_provider().url(issuer);
        let call = call.set_client_id_list(Some(client_ids.to_vec())).set_tags(Some(iam_tags(CREATE, tags)?));
        match api.write(CREATE, call.send()).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is(EXISTS) => self.is_of(issuer, tags, failure).await,
            Err(failure) => Err(failure.problem()),
        }
    }

    /// Whether the provider that stands in the way is the one that was to be made.
    async fn is_of(&self, issuer: &str, tags: &Tags, failure: Failure) -> Result<(), Problem> {
        let account = self.account().await?;
        let arn = trust::provider_arn(partition::of_region(&self.name()), &account, issuer);
        match get(&self.context.api, &arn).await {
            Ok(found) if trust::issuer_host(&found.url) != trust::issuer_host(issuer) => {
                Err(Failure { message: format!("{arn} exists and is of {}", found.url), ..failure }.problem())
            }
            // Its tags are its owner's, and not told.
            Ok(found) if tags.iter().any(|(key, value)| found.tags.get(key) != Some(value)) => {
                Err(Failure { message: format!("{arn} exists by now and was not made for this"), ..failure }
                    .problem())
            }
            Ok(_) => Ok(()),
            // Somebody removed it meanwhile, or it has another name: the refusal stands.
            Err(other) if other.is_absent() => Err(failure.problem()),
            Err(other) => Err(other.problem()),
        }
    }

    /// Sets tags of a provider, whatever others it has.
    ///
    /// # Errors
    /// AWS refused it.
    pub async fn tag_open_id_provider(&self, arn: &str, tags: &Tags) -> Result<(), Problem> {
        let call = self.context.api.iam.tag_open_id_connect_provider().open_id_connect_provider_arn(arn);
        let call = call.set_tags(Some(iam_tags(TAG, tags)?));
        self.context.api.write(TAG, call.send()).await.map(drop).map_err(Failure::problem)
    }

    /// Adds an audience to those that a provider takes tokens for. One that is there already is fine.
    ///
    /// # Errors
    /// AWS refused it.
    pub async fn add_client_id(&self, arn: &str, client_id: &str) -> Result<(), Problem> {
        let call = self
            .context
            .api
            .iam
            .add_client_id_to_open_id_connect_provider()
            .open_id_connect_provider_arn(arn)
            .client_id(client_id);
        self.context
            .api
            .write("iam:AddClientIDToOpenIDConnectProvider", call.send())
            .await
            .map(drop)
            .map_err(Failure::problem)
    }

    /// Removes a provider. One that is gone is done.
    ///
    /// # Errors
    /// AWS refused it.
    pub async fn delete_open_id_provider(&self, arn: &str) -> Result<(), Problem> {
        let call = self.context.api.iam.delete_open_id_connect_provider().open_id_connect_provider_arn(arn);
        match self.context.api.write("iam:DeleteOpenIDConnectProvider", call.send()).await {
            Err(failure) if failure.is_absent() => Ok(()),
            // What a policy allows by its tags may be forbidden once it is gone: then it has none.
            Err(failure)
                if failure.is_forbidden()
                    && get(&self.context.api, arn).await.is_err_and(|it| it.is_absent()) =>
            {
                Ok(())
            }
            other => other.map(drop).map_err(Failure::problem),
        }
    }
}

fn iam_tags(action: &'static str, tags: &Tags) -> Result<Vec<Tag>, Problem> {
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build();
    tags.iter()
        .map(tag)
        .collect::<Result<_, _>>()
        .map_err(|_| Failure::local(action, "InvalidCall", "a tag has no key").problem())
}

pub(crate) async fn read(api: &Api, arn: &str) -> Reading<Provider> {
    reading(get(api, arn).await)
}

async fn get(api: &Api, arn: &str) -> Result<Provider, Failure> {
    let answer = api
        .read(GET, api.iam.get_open_id_connect_provider().open_id_connect_provider_arn(arn).send())
        .await?;
    let tags = answer.tags.unwrap_or_default().into_iter().map(|it| (it.key, it.value)).collect();
    Ok(Provider {
        url: answer.url.unwrap_or_default(),
        client_ids: answer.client_id_list.unwrap_or_default(),
        tags,
    })
}
