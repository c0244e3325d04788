//! Small public documents in a bucket that the user named. The bucket itself is the user's to make.

use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use iam::issuer::{CONTENT_TYPE, Document};
use iam::publication::ownership::{OWNER_METADATA, Object};
use model::finding::Reading;
use model::{ActionNeeded, Problem};

use crate::errors::{Failure, reading};
use crate::region::Region;

const GET: &str = "s3:GetObject";
/// Without the right to list a bucket, what is missing in it looks forbidden.
const GET_AND_LIST: &str = "s3:GetObject and s3:ListBucket";
/// No document of an issuer is larger, in bytes.
const LARGEST: usize = 256 * 1024;
/// How long the content of an object may take, once it begins to come.
const LONGEST: Duration = Duration::from_secs(15);

impl Region {
    /// A document, read anew; at most 256 KiB of UTF-8. Absent is the document alone: a bucket that is
    /// missing is a failure that names it.
    pub async fn object(&self, bucket: &str, key: &str) -> Reading<Object> {
        match self.get(bucket, key).await {
            Err(failure) if failure.is("NoSuchKey") => Reading::Absent,
            Err(failure) if failure.is_forbidden() => {
                Reading::AccessDenied { permission: GET_AND_LIST.to_owned() }
            }
            Err(failure) => match self.wrong_bucket(bucket, &failure) {
                Some(message) => Reading::Failed { message },
                None => reading(Err(failure)),
            },
            Ok(object) => Reading::Found(object),
        }
    }

    /// A document that is to be removed: of a bucket that is gone, or by now somebody's in another region,
    /// nothing is left.
    pub async fn object_left(&self, bucket: &str, key: &str) -> Reading<Object> {
        match self.get(bucket, key).await {
            Err(failure) if failure.is("NoSuchKey") || self.wrong_bucket(bucket, &failure).is_some() => {
                Reading::Absent
            }
            Err(failure) if failure.is_forbidden() => {
                Reading::AccessDenied { permission: GET_AND_LIST.to_owned() }
            }
            other => reading(other),
        }
    }

    /// Writes a document that says whose it is: in place of the version that was read, or where there was
    /// none.
    ///
    /// # Errors
    /// AWS refused it, also since somebody else was first; a bucket that is missing is the author's to make.
    pub async fn put_object(
        &self,
        bucket: &str,
        document: &Document,
        mark: &str,
        over: Option<&str>,
    ) -> Result<(), Problem> {
        let api = &self.context.api;
        let body = ByteStream::from(document.body.as_bytes().to_vec());
        let call =
            api.s3.put_object().bucket(bucket).key(&document.key).body(body).content_type(CONTENT_TYPE);
        let call = call.metadata(OWNER_METADATA, mark);
        let call = match over {
            Some(version) => call.if_match(version),
            None => call.if_none_match("*"),
        };
        api.write("s3:PutObject", call.send()).await.map(drop).map_err(|it| self.bucket_problem(bucket, it))
    }

    /// Removes a document, if it is still the version that was read. One that is gone is done, and so is one
    /// whose bucket is gone.
    ///
    /// # Errors
    /// AWS refused it, also since somebody wrote another.
    pub async fn delete_object(&self, bucket: &str, key: &str, version: &str) -> Result<(), Problem> {
        let api = &self.context.api;
        let call = api.s3.delete_object().bucket(bucket).key(key).if_match(version);
        match api.write("s3:DeleteObject", call.send()).await {
            Err(failure) if failure.is("NoSuchBucket") || failure.is("NoSuchKey") => Ok(()),
            other => other.map(drop).map_err(|it| self.bucket_problem(bucket, it)),
        }
    }

    async fn get(&self, bucket: &str, key: &str) -> Result<Object, Failure> {
        let api = &self.context.api;
        let mut answer = api.read(GET, api.s3.get_object().bucket(bucket).key(key).send()).await?;
        let cut =
            |message: &str| Failure { action: GET, code: None, message: message.to_owned(), open: false };
        let content = async {
            let mut bytes = Vec::new();
            while let Some(chunk) = answer.body.try_next().await.map_err(|_| cut("the connection failed"))? {
                bytes.extend_from_slice(&chunk);
                if bytes.len() > LARGEST {
                    return Err(cut("the object is larger than 256 KiB, which no document of an issuer is"));
                }
            }
            String::from_utf8(bytes).map_err(|_| cut("the object is not UTF-8"))
        };
        let body =
            tokio::time::timeout(LONGEST, content).await.unwrap_or_else(|_| Err(cut("no answer in time")))?;
        let version = answer.e_tag.ok_or_else(|| cut("the object has no ETag"))?;
        Ok(Object { body, version, metadata: answer.metadata.unwrap_or_default().into_iter().collect() })
    }

    /// What to say where the fault is with the bucket that the user named.
    fn wrong_bucket(&self, bucket: &str, failure: &Failure) -> Option<String> {
        if failure.is("NoSuchBucket") {
            Some(format!("bucket {bucket} does not exist; create it in {}, or name another", self.name()))
        } else if failure.is("PermanentRedirect") || failure.is("AuthorizationHeaderMalformed") {
            Some(format!("bucket {bucket} is not in {}; name one that is", self.name()))
        } else {
            None
        }
    }

    fn bucket_problem(&self, bucket: &str, failure: Failure) -> Problem {
        match self.wrong_bucket(bucket, &failure) {
            Some(message) => {
                Problem { code: failure.code.unwrap_or_default(), message, who: ActionNeeded::SpecAuthor }
            }
            None if failure.is("PreconditionFailed") || failure.is("ConditionalRequestConflict") => {
                let message = "somebody else wrote it meanwhile, so it is looked at again".to_owned();
                Problem { code: failure.code.unwrap_or_default(), message, who: ActionNeeded::None }
            }
            None => failure.problem(),
        }
    }
}
