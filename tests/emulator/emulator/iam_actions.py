"""Which IAM actions a request needs, on what, and what is known about it; read from the request alone.

Source: AWS Service Authorization Reference. Left out: further resources of one call (the instance of AttachVolume).
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
#: Parameter with the id, and type in ARNs, of what actions of EC2 are called after.
_EC2_NOUNS = {
    "NetworkInterface": ("NetworkInterfaceId", "network-interface"),
    "SecurityGroup": ("GroupId", "security-group"),
    "Snapshot": ("SnapshotId", "snapshot"),
    "Subnet": ("SubnetId", "subnet"),
    "Volume": ("VolumeId", "volume"),
    "Vpc": ("VpcId", "vpc"),
}
_EC2_NOUN = re.compile(rf"^(?:Attach|Create|Delete|Detach|Modify)(?P<noun>{'|'.join(_EC2_NOUNS)})$")
#: Types in ARNs by the prefix of ids.
_EC2_TYPES = {
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "nat": "natgateway",
    "rtb": "route-table",
    "sg": "security-group",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}
_EFS_PATH = re.compile(r"/(?P<kind>access-point|file-system)s/(?P<id>[a-z]+-[0-9a-f]+)")
_ARN = re.compile(r"^(?:LoadBalancerArn|ListenerArn|RuleArn|TargetGroupArn|ResourceArns\.member\.1)$")
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
    *(f"{service}:createaction" for service in _TAGGING),
)


def needed(request: AwsRequest) -> list[str]:
    """The actions that the caller must be allowed; the second, if any, is for tags set on what is created."""
    if request.service == "s3":
        return [f"s3:{_S3.get(request.action, request.action)}"]
    service = _PREFIXES.get(request.service, request.service)
    tagging = _IAM_TAGGING.get(request.action) if service == "iam" else _TAGGING.get(service)
    creates = request.action.startswith(("Allocate", "Create", "Run")) and request.action != "CreateTags"
    actions = [f"{service}:{request.action}"]
    if tagging and creates and request_tags(request):
        actions.append(f"{service}:{tagging}")
    return actions


def resources(request: AwsRequest, account: str) -> list[str | None]:
    """ARNs of what a request is about; [None] where it does not plainly say.

    Said are buckets and objects, what calls of load balancing name by ARN, file systems and access points in a path,
    and what an action of EC2 is called after, such as the volume of CreateVolume or AttachVolume. Of new things the id
    is unknown, so it is `new`.
    """
    if request.service == "s3" and request.action != "ListBuckets":
        return [f"arn:aws:s3:::{request.parameters['path'].strip('/')}"]
    if request.service == "elbv2":
        named = [value for key, value in request.parameters.items() if _ARN.match(key) and value.startswith("arn:")]
        return named[:1] or [None]
    if request.service == "elasticfilesystem":
        named = _EFS_PATH.search(request.parameters["path"])
        if named is None:
            return [None]
        return [f"arn:aws:elasticfilesystem:{request.region}:{account}:{named['kind']}/{named['id']}"]
    if request.service != "ec2":
        return [None]
    place = f"arn:aws:ec2:{request.region}:{account}:"
    if request.action == "CreateTags":
        ids = [value for key, value in request.parameters.items() if key.startswith("ResourceId.")]
        return [f"{place}{_EC2_TYPES.get(one.partition('-')[0], '*')}/{one}" for one in ids] or [None]
    noun = _EC2_NOUN.match(request.action)
    if noun is None:
        return [None]
    parameter, kind = _EC2_NOUNS[noun["noun"]]
    return [f"{place}{kind}/{request.parameters.get(parameter, 'new')}"]


def context(request: AwsRequest, action: str) -> dict[str, list[str]]:
    """Values of the condition keys that a request tells by itself."""
    tags = request_tags(request)
    found = {"aws:requestedregion": [request.region]}
    found.update({f"aws:requesttag/{key.lower()}": [value] for key, value in tags.items()})
    if tags:
        found["aws:tagkeys"] = list(tags)
    service, _, name = action.partition(":")
    if name == _TAGGING.get(service) and name != request.action:
        found[f"{service}:createaction"] = [request.action]
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
