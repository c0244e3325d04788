"""Buckets as AWS makes them since April 2023: closed to the public until their owner opens them.

A new bucket blocks public policies and ACLs and has no ACLs at all. Lifting the block is a call of its own, and a
public policy is refused before it. Metadata of an object is small. Sources: Amazon S3 User Guide, "Blocking public
access to your Amazon S3 storage", "Controlling ownership of objects" and "Working with object metadata".
"""

import json
from typing import Any

from moto.s3.exceptions import S3AccessDeniedError, S3ClientError
from moto.s3.models import FakeBucket, PublicAccessBlock, S3Backend
from moto.s3.responses import S3Response
from moto.s3.utils import bucket_policy_is_public

from emulator import public_objects

#: Most bytes of what a user calls an object's metadata, keys and values together.
_METADATA = 2048
_PREFIX = "x-amz-meta-"


def _new(self: FakeBucket, *args: Any, **kwargs: Any) -> None:
    _moto_new(self, *args, **kwargs)
    self.public_access_block = PublicAccessBlock(True, True, True, True)


def _put_policy(self: S3Backend, bucket_name: str, policy: bytes) -> None:
    block = self.get_bucket(bucket_name).public_access_block
    try:
        if not isinstance(json.loads(policy), dict):
            raise ValueError
    except ValueError:
        raise S3ClientError("MalformedPolicy", "Policies must be valid JSON and the first byte must be '{'") from None
    if block and block.block_public_policy and bucket_policy_is_public(policy):
        raise S3AccessDeniedError
    _moto_put_policy(self, bucket_name, policy)


def _acl(self: S3Response, headers: Any) -> Any:
    acl = _moto_acl(self, headers)
    bucket = self.backend.buckets.get(self.bucket_name)
    if acl is not None and acl.public_read and bucket is not None:
        if not public_objects.has_acls(bucket):
            raise S3ClientError("AccessControlListNotSupported", "The bucket does not allow ACLs")
        if bucket.public_access_block and bucket.public_access_block.block_public_acls:
            raise S3AccessDeniedError
    return acl


def _put_object(self: S3Response) -> Any:
    metadata = [one for one in self.headers.items() if one[0].lower().startswith(_PREFIX)]
    if sum(len(key) - len(_PREFIX) + len(value.encode()) for key, value in metadata) > _METADATA:
        raise S3ClientError(
            "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size"
        )
    return _moto_put_object(self)


_moto_new = FakeBucket.__init__
_moto_put_object = S3Response.put_object
_moto_put_policy = S3Backend.put_bucket_policy
_moto_acl = S3Response._acl_from_headers
FakeBucket.__init__ = _new
S3Response.put_object = _put_object
S3Backend.put_bucket_policy = _put_policy
S3Response._acl_from_headers = _acl
