//! SDK clients of one region, and the one place where a call is sent: in its turn, and with its error made
//! ours.

use std::future::Future;
use std::sync::Arc;

use aws_smithy_async::future::pagination_stream::PaginationStream;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use model::Timestamp;

use crate::errors::{Failure, NOT_YET};
use crate::limits::Limits;

#[derive(Clone)]
pub(crate) struct Api {
    pub ec2: aws_sdk_ec2::Client,
    /// For creations that nothing but a token guards against being done twice, or nothing at all: exactly one
    /// attempt, so that what one attempt left unknown is not hidden by the refusal of the next.
    pub ec2_once: aws_sdk_ec2::Client,
    /// Elastic Load Balancing's first version.
    pub classic: aws_sdk_elasticloadbalancing::Client,
    pub elb: aws_sdk_elasticloadbalancingv2::Client,
    pub secrets: aws_sdk_secretsmanager::Client,
    pub tagging: aws_sdk_resourcegroupstagging::Client,
    pub iam: aws_sdk_iam::Client,
    pub sts: aws_sdk_sts::Client,
    pub efs: aws_sdk_efs::Client,
    pub s3: aws_sdk_s3::Client,
    /// The account of the identity that calls, once it is known; the same for all regions.
    pub account: Arc<tokio::sync::OnceCell<String>>,
    pub limits: Arc<Limits>,
}

impl Api {
    /// Sends a call that changes nothing. `action` is its name in IAM, such as `ec2:DescribeVpcs`.
    pub async fn read<T, E: ProvideErrorMetadata>(
        &self,
        action: &'static str,
        call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, Failure> {
        self.limits.reads.take().await;
        call.await.map_err(|it| Failure::new(action, it))
    }

    /// Sends a call that changes something.
    pub async fn write<T, E: ProvideErrorMetadata>(
        &self,
        action: &'static str,
        call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, Failure> {
        self.write_until(None, action, call).await
    }

    /// The same, but once its time is over it is not sent: then nothing was done, and it is decided anew.
    pub async fn write_until<T, E: ProvideErrorMetadata>(
        &self,
        until: Option<Timestamp>,
        action: &'static str,
        call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, Failure> {
        if !self.limits.writes.take_until(until).await {
            return Err(late(action));
        }
        tracing::debug!(action, "write");
        call.await.map_err(|it| Failure::new(action, it))
    }

    /// Reads all pages, or fails.
    pub async fn pages<T, E: ProvideErrorMetadata>(
        &self,
        action: &'static str,
        mut pages: PaginationStream<Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<Vec<T>, Failure> {
        let mut res = Vec::new();
        loop {
            self.limits.reads.take().await;
            match pages.next().await {
                Some(page) => res.push(page.map_err(|it| Failure::new(action, it))?),
                None => return Ok(res),
            }
        }
    }
}

/// A call that waited for its turn until it could not be sent any more.
pub(crate) fn late(action: &'static str) -> Failure {
    Failure::local(action, NOT_YET, "too many calls wait for their turn")
}
