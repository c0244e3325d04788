"""Which IAM actions a request needs, on what, and what is known about it; read from the request alone.

Source: AWS Service Authorization Reference.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from emulator import iam_resources
from emulator.iam_resources import Associations, Resource
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
#: The action that allows tags on what is created, by service; some of IAM's by what creates.
_TAGGING = {
    "ec2": "CreateTags",
    "elasticfilesystem": "TagResource",
    "elasticloadbalancing": "AddTags",
    "secretsmanager": "TagResource",
}
_IAM_TAGGING = {
    "CreateInstanceProfile": "TagInstanceProfile",
    "CreateOpenIDConnectProvider": "TagOpenIDConnectProvider",
    "CreatePolicy": "TagPolicy",
    "CreateRole": "TagRole",
}
#: Beginnings of the condition keys that `context` is complete in.
KNOWN = (
    "aws:requesttag/",
    "aws:tagkeys",
    "aws:requestedregion",
    "iam:awsservicename",
    "iam:passedtoservice",
    *(f"{service}:createaction" for service in _TAGGING),
)


@dataclass
class Demand:
    """One thing that has to be allowed."""

    action: str
    resource: Resource
    #: Values of condition keys, by key in lower case.
    context: dict[str, list[str]] = field(default_factory=dict)


def action(request: AwsRequest) -> str:
    """The action that a call is named after."""
    name = _S3.get(request.action, request.action) if request.service == "s3" else request.action
    return f"{_PREFIXES.get(request.service, request.service)}:{name}"


def demands(request: AwsRequest, account: str, associations: Associations) -> Iterator[Demand]:
    """All that the caller must be allowed: the action on each resource, and tags on each that is made with some."""
    named = action(request)
    resources = iam_resources.resources(request, account, associations)
    for one in resources:
        yield Demand(named, one, _context(request, one))
    tagging = _tagging(request)
    listener = iam_resources.listener(request)
    for one in [*resources, *([listener] if listener else [])]:
        if tagging and one.sets and (one.made or one.arn is None):
            context = {f"{tagging.partition(':')[0]}:createaction": [request.action]}
            yield Demand(tagging, one, {**_context(request, one), **context})


def _tagging(request: AwsRequest) -> str | None:
    """The action that allows tags on what a call makes."""
    if not request.action.startswith(("Allocate", "Create", "Run")) or request.action == "CreateTags":
        return None
    service = _PREFIXES.get(request.service, request.service)
    name = _IAM_TAGGING.get(request.action) if service == "iam" else _TAGGING.get(service)
    return f"{service}:{name}" if name else None


def _context(request: AwsRequest, resource: Resource) -> dict[str, list[str]]:
    """Values of the condition keys that a request tells of a resource by itself."""
    found = {"aws:requestedregion": [request.region]}
    found.update({f"aws:requesttag/{key.lower()}": [value] for key, value in resource.sets.items()})
    if resource.sets:
        found["aws:tagkeys"] = list(resource.sets)
    return found
