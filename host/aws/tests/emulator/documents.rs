//! Documents in a bucket: written with their owner, over what was read alone, and removed likewise.

use iam::issuer::Document;
use iam::publication::ownership::{OWNER_METADATA, Object};
use model::finding::Reading;
use model::{ActionNeeded, Tags};
use serde_json::json;

use crate::bed::Bed;

const KEY: &str = "prod/.well-known/openid-configuration";

fn administrators_s3(bed: &Bed) -> aws_sdk_s3::Client {
    aws_sdk_s3::Client::from_conf(
        aws_sdk_s3::config::Builder::from(&bed.administrator().config).force_path_style(true).build(),
    )
}

fn document(body: &str) -> Document {
    Document { key: KEY.to_owned(), body: body.to_owned() }
}

async fn found(region: &aws::Region) -> Object {
    match region.object("documents", KEY).await {
        Reading::Found(it) => it,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn documents_are_written_read_and_removed() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let s3 = administrators_s3(&bed);
    s3.create_bucket().bucket("documents").send().await.unwrap();
    assert_eq!(region.object("documents", KEY).await, Reading::Absent);
    assert_eq!(region.put_object("documents", &document("{\"issuer\": \"ü\"}"), "mark", None).await, Ok(()));
    let object = found(&region).await;
    let marked = |mark: &str| Tags::from([(OWNER_METADATA.to_owned(), mark.to_owned())]);
    assert_eq!((object.body.as_str(), &object.metadata), ("{\"issuer\": \"ü\"}", &marked("mark")));
    let head = s3.head_object().bucket("documents").key(KEY).send().await.unwrap();
    assert_eq!(head.content_type(), Some("application/json"));
    assert_eq!(region.put_object("documents", &document("{}"), "other", Some(&object.version)).await, Ok(()));
    let object = found(&region).await;
    assert_eq!((object.body.as_str(), &object.metadata), ("{}", &marked("other")));
    for _ in 0..2 {
        assert_eq!(region.delete_object("documents", KEY, &object.version).await, Ok(()));
    }
    assert_eq!(region.object("documents", KEY).await, Reading::Absent);
    let large =
        s3.put_object().bucket("documents").key(KEY).body("x".repeat(256 * 1024 + 1).into_bytes().into());
    large.send().await.unwrap();
    assert!(matches!(
        region.object("documents", KEY).await,
        Reading::Failed { message } if message.contains("256 KiB")
    ));
}

#[tokio::test]
async fn what_somebody_writes_between_a_read_and_a_write_stays() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let s3 = administrators_s3(&bed);
    s3.create_bucket().bucket("documents").send().await.unwrap();
    assert_eq!(region.put_object("documents", &document("ours"), "mark", None).await, Ok(()));
    let ours = found(&region).await;
    s3.put_object().bucket("documents").key(KEY).body(b"theirs".to_vec().into()).send().await.unwrap();
    let writes = [
        region.put_object("documents", &document("new"), "mark", None).await,
        region.put_object("documents", &document("new"), "mark", Some(&ours.version)).await,
        region.delete_object("documents", KEY, &ours.version).await,
    ];
    for problem in writes.map(Result::unwrap_err) {
        assert_eq!((problem.code.as_str(), problem.who), ("PreconditionFailed", ActionNeeded::None));
    }
    let theirs = found(&region).await;
    assert_eq!((theirs.body.as_str(), theirs.metadata), ("theirs", Tags::new()));
}

#[tokio::test]
async fn a_missing_bucket_is_named_and_a_closed_one_names_permissions() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let message = "bucket nowhere does not exist; create it in us-east-1, or name another";
    assert_eq!(region.object("nowhere", "key").await, Reading::Failed { message: message.into() });
    let problem = region.put_object("nowhere", &document("{}"), "mark", None).await.unwrap_err();
    assert_eq!((problem.message.as_str(), problem.who), (message, ActionNeeded::SpecAuthor));
    // Nothing of ours is left in it.
    assert_eq!(region.object_left("nowhere", "key").await, Reading::Absent);
    assert_eq!(region.delete_object("nowhere", "key", "1").await, Ok(()));
    bed.faults(json!([{"kind": "access-denied", "service": "s3"}])).await;
    let denied = || Reading::AccessDenied { permission: "s3:GetObject and s3:ListBucket".to_owned() };
    assert_eq!(
        (region.object("nowhere", "key").await, region.object_left("nowhere", "key").await),
        (denied(), denied())
    );
    let problem = region.put_object("nowhere", &document("{}"), "mark", None).await.unwrap_err();
    assert_eq!(problem.who, ActionNeeded::CloudAdmin);
    assert!(problem.message.contains("s3:PutObject"), "{problem:?}");
}
