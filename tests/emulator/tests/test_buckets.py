"""Buckets: closed until opened, read by everybody only where that is allowed, named in the call log as AWS names it."""

import json
import urllib.error
import urllib.request

import pytest
from conftest import refused
from issuer import OPEN, Issuer

_numbers = iter(range(10**6))


@pytest.fixture
def bucket(aws):
    """A new bucket with one object."""
    name = f"bucket-{next(_numbers)}"
    aws.s3.create_bucket(Bucket=name)
    aws.s3.put_object(Bucket=name, Key="a/b", Body=b"content")
    return name


def _status(endpoint, path, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{path}", headers=headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_new_bucket_blocks_the_public(aws, bucket):
    block = aws.s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    assert len(block) == 4 and all(block.values())
    public = json.dumps(Issuer(bucket).public_policy())
    refused("AccessDenied", aws.s3.put_bucket_policy, Bucket=bucket, Policy=public)
    aws.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=public)


def test_acls_do_not_count_in_a_new_bucket(aws, bucket):
    refused("AccessControlListNotSupported", aws.s3.put_object, Bucket=bucket, Key="c", Body=b"", ACL="public-read")
    refused("AccessControlListNotSupported", aws.s3.put_object_acl, Bucket=bucket, Key="a/b", ACL="public-read")


def test_a_policy_is_json(aws, bucket):
    refused("MalformedPolicy", aws.s3.put_bucket_policy, Bucket=bucket, Policy="nonsense")


def test_everybody_reads_only_what_is_public(aws, endpoint, bucket):
    assert _status(endpoint, f"{bucket}/a/b") == 403
    aws.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    policy = Issuer(bucket).public_policy()
    policy["Statement"][0]["Resource"] = f"arn:aws:s3:::{bucket}/a/*"
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    aws.s3.put_object(Bucket=bucket, Key="c", Body=b"content")
    assert [_status(endpoint, f"{bucket}/{key}") for key in ("a/b", "a/none", "c", "")] == [200, 403, 403, 403]
    hosts = (f"{bucket}.s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com")
    assert [_status(endpoint, path, Host=host) for host, path in zip(hosts, ("a/b", f"{bucket}/a/b"))] == [200, 200]
    assert [_status(endpoint, path, Host=host) for host, path in zip(hosts, ("c", f"{bucket}/c"))] == [403, 403]


def test_metadata_belongs_to_one_write_and_all_who_read_the_object_read_it(aws, endpoint, bucket):
    aws.s3.put_object(Bucket=bucket, Key="c", Body=b"1", Metadata={"Owner": "somebody"})
    assert aws.s3.get_object(Bucket=bucket, Key="c")["Metadata"] == {"owner": "somebody"}
    assert aws.s3.head_object(Bucket=bucket, Key="c")["Metadata"] == {"owner": "somebody"}
    aws.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(Issuer(bucket).public_policy()))
    with urllib.request.urlopen(f"{endpoint}/{bucket}/c") as answer:
        assert answer.headers["x-amz-meta-owner"] == "somebody"
    aws.s3.put_object(Bucket=bucket, Key="c", Body=b"2")
    assert aws.s3.get_object(Bucket=bucket, Key="c")["Metadata"] == {}


def test_metadata_is_small(aws, bucket):
    aws.s3.put_object(Bucket=bucket, Key="c", Body=b"", Metadata={"k": "x" * 2047})
    refused("MetadataTooLarge", aws.s3.put_object, Bucket=bucket, Key="c", Body=b"", Metadata={"k": "x" * 2048})


def test_writes_and_removals_can_depend_on_what_lies_there(aws, bucket):
    read = aws.s3.get_object(Bucket=bucket, Key="a/b")["ETag"]
    refused("PreconditionFailed", aws.s3.put_object, Bucket=bucket, Key="a/b", Body=b"2", IfNoneMatch="*")
    aws.s3.put_object(Bucket=bucket, Key="a/b", Body=b"2", IfMatch=read)
    refused("PreconditionFailed", aws.s3.put_object, Bucket=bucket, Key="a/b", Body=b"3", IfMatch=read)
    refused("PreconditionFailed", aws.s3.delete_object, Bucket=bucket, Key="a/b", IfMatch=read)
    assert aws.s3.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"2"
    aws.s3.delete_object(Bucket=bucket, Key="a/b", IfMatch=aws.s3.head_object(Bucket=bucket, Key="a/b")["ETag"])
    refused("NoSuchKey", aws.s3.put_object, Bucket=bucket, Key="a/b", Body=b"3", IfMatch=read)
    refused("NoSuchKey", aws.s3.delete_object, Bucket=bucket, Key="a/b", IfMatch=read)
    aws.s3.put_object(Bucket=bucket, Key="a/b", Body=b"3", IfNoneMatch="*")


def test_an_address_that_its_maker_signed_is_readable(aws, bucket):
    address = aws.s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a/b"})
    with urllib.request.urlopen(address) as answer:
        assert answer.read() == b"content"


def test_calls_are_named_as_aws_names_them(aws, control):
    start, name = control("calls")["next"], f"bucket-{next(_numbers)}"
    aws.s3.create_bucket(Bucket=name)
    aws.s3.put_object(Bucket=name, Key="a/b", Body=b"")
    aws.s3.get_object(Bucket=name, Key="a/b")
    aws.s3.list_objects_v2(Bucket=name)
    aws.s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=OPEN)
    aws.s3.delete_object(Bucket=name, Key="a/b")
    aws.efs.describe_file_systems()
    shown = [(one["service"], one["action"], one["write"]) for one in control(f"calls?since={start}")["calls"]]
    assert shown == [
        ("s3", "CreateBucket", True),
        ("s3", "PutObject", True),
        ("s3", "GetObject", False),
        ("s3", "ListObjectsV2", False),
        ("s3", "PutPublicAccessBlock", True),
        ("s3", "DeleteObject", True),
        ("elasticfilesystem", "DescribeFileSystems", False),
    ]


def test_faults_strike_rest_calls_by_name(aws, control, bucket):
    control("faults", [{"kind": "access-denied", "service": "s3", "action": "PutObject"}], method="PUT")
    refused("AccessDenied", aws.s3.put_object, Bucket=bucket, Key="a", Body=b"")
    aws.s3.get_object(Bucket=bucket, Key="a/b")
    control("faults", [{"kind": "throttle", "service": "elasticfilesystem"}], method="PUT")
    refused("ThrottlingException", aws.efs.describe_file_systems)
