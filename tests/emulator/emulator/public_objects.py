"""Reads what anybody may read of S3, by its address: as AWS itself reads a published OIDC issuer.

An object is public when its bucket's policy lets everybody get it, or its ACL does, and the bucket's public access
block does not forbid that. The address must be that of the bucket's own region. Nothing is read over a network.
"""

import re
from urllib.parse import unquote, urlsplit

from moto.s3.models import FakeBucket, FakeKey, s3_backends

from emulator import policies

_VIRTUAL = re.compile(r"^(?P<bucket>[a-z0-9-]+)\.s3\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_PATH = re.compile(r"^s3\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")


def read(address: str) -> bytes:
    """The content of the object at an `https` address; LookupError where nobody finds or may read it."""
    parts = urlsplit(address)
    bucket_name, region, key_name = _place(parts.hostname or "", unquote(parts.path).removeprefix("/"))
    if parts.scheme != "https" or parts.query or parts.port not in (None, 443):
        raise LookupError(f"{address} is no plain https address")
    place = s3_backends.bucket_accounts.get(bucket_name)
    if place is None:
        raise LookupError(f"no bucket {bucket_name}")
    partition, account = place
    bucket = s3_backends[account][partition].buckets[bucket_name]
    if bucket.region_name != region:
        raise LookupError(f"bucket {bucket_name} is in {bucket.region_name}, not {region}")
    found = bucket.keys.get(key_name)
    if not isinstance(found, FakeKey):
        raise LookupError(f"no object {key_name} in bucket {bucket_name}")
    if not is_public(bucket, found):
        raise LookupError(f"object {key_name} of bucket {bucket_name} is not public")
    return found.value


def _place(host: str, path: str) -> tuple[str, str, str]:
    virtual, by_path = _VIRTUAL.match(host), _PATH.match(host)
    if virtual:
        return virtual["bucket"], virtual["region"], path
    if by_path:
        bucket, _, key = path.partition("/")
        return bucket, by_path["region"], key
    raise LookupError(f"{host} is not a host of S3")


def is_public(bucket: FakeBucket, key: FakeKey) -> bool:
    """Whether anybody may get the object."""
    block = bucket.public_access_block
    request = policies.Request(
        action="s3:GetObject",
        resource=f"arn:{bucket.partition}:s3:::{bucket.name}/{key.name}",
        principal=("AWS", "anonymous"),
        context={"aws:securetransport": ["true"]},
    )
    said = policies.verdict([bucket.policy], request) if bucket.policy else None
    if said is False:
        return False
    by_policy = said is True and not (block and block.restrict_public_buckets)
    by_acl = has_acls(bucket) and bool(key.acl and key.acl.public_read) and not (block and block.ignore_public_acls)
    return by_policy or by_acl


def has_acls(bucket: FakeBucket) -> bool:
    """Whether ACLs count in the bucket; in a new one they do not."""
    return any(one in str(bucket.ownership_rule) for one in ("ObjectWriter", "BucketOwnerPreferred"))
