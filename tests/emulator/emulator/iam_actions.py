"""Which IAM actions a request needs, on what, and what is known about it; read from the request alone.

Source: AWS Service Authorization Reference. Left out: permissions on several resources of one call, and the tags
that a resource has already.
"""

import re
from typing import Any

from emulator.request import AwsRequest

_PREFIXES = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "tagging": "tag"}
#: Where IAM's action is not named as S3's operation.
_S3 = {
    "AbortMultipartUpload": "AbortMultipartUpload",
    "CompleteMultipartUpload": "PutObject",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "DeleteBucketOwnershipControls": "PutBucketOwnershipControls",
    "DeleteBucketTagging": "PutBucketTagging",
    "DeleteObjects": "DeleteObject",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListParts": "ListMultipartUploadParts",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "UploadPart": "PutObject",
}
_TAG_KEYS = (
    re.compile(r"^TagSpecification\.\d+\.Tag\.(\d+)\.Key$"),
    re.compile(r"^Tag\.(\d+)\.Key$"),
    re.compile(r"^Tags\.member\.(\d+)\.Key$"),
)
#: Keys of conditions that `context` is complete in.
KNOWN = ("aws:requesttag/", "aws:tagkeys", "aws:requestedregion", "ec2:createaction", "elasticloadbalancing:createaction")


def needed(request: AwsRequest) -> list[str]:
    """The actions that the caller must be allowed; the second, if any, is for tags set on what is created."""
    if request.service == "s3":
        return [f"s3:{_S3.get(request.action, request.action)}"]
    service = _PREFIXES.get(request.service, request.service)
    actions = [f"{service}:{request.action}"]
    if request.action == "CreateTags" or not request_tags(request):
        return actions
    if request.service == "ec2":
        actions.append("ec2:CreateTags")
    elif service == "elasticloadbalancing" and request.action.startswith("Create"):
        actions.append("elasticloadbalancing:AddTags")
    return actions


def resource(request: AwsRequest) -> str | None:
    """ARN of the bucket or object; None for other services, whose resources are not looked at."""
    if request.service != "s3" or request.action == "ListBuckets":
        return None
    path = request.parameters["path"].strip("/")
    return f"arn:aws:s3:::{path}"


def context(request: AwsRequest, action: str) -> dict[str, list[str]]:
    """Values of the condition keys that a request tells by itself."""
    tags = request_tags(request)
    found = {"aws:requestedregion": [request.region]}
    found.update({f"aws:requesttag/{key.lower()}": [value] for key, value in tags.items()})
    if tags:
        found["aws:tagkeys"] = list(tags)
    if action in ("ec2:CreateTags", "elasticloadbalancing:AddTags") and not action.endswith(f":{request.action}"):
        found[f"{action.partition(':')[0]}:createaction"] = [request.action]
    return found


def request_tags(request: AwsRequest) -> dict[str, str]:
    """The tags that a request sets."""
    if isinstance(request.parameters.get("Tags"), list):
        return {one["Key"]: one.get("Value", "") for one in request.parameters["Tags"] if "Key" in one}
    found: dict[str, Any] = {}
    for name, key in request.parameters.items():
        if any(pattern.match(name) for pattern in _TAG_KEYS):
            found[key] = request.parameters.get(f"{name.removesuffix('.Key')}.Value", "")
    return found
