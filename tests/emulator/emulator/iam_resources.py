"""What IAM checks an action on: the ARNs of what a call names and of what it makes, and the tags that it sets on that.

Source: AWS Service Authorization Reference, "Resource types" of each action. Calls of EC2 that are in no table here are
about what nobody knows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from emulator.request import AwsRequest

#: Stands for the id of what is being made.
NEW = "new"
#: Asks the world which route table and which subnet an association is of.
Associations = Callable[[str], list[str]]


@dataclass
class Resource:
    """One thing that an action has to be allowed on."""

    #: None where it is not known; `*` where the action takes no resource.
    arn: str | None
    #: Whether the call makes it.
    made: bool = False
    #: Tags that the call sets, as conditions on this resource see them.
    sets: dict[str, str] = field(default_factory=dict)


#: Types in ARNs by the prefix of ids.
_TYPES = {
    "ami": "image",
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
#: Types whose ARNs name no account.
_OF_NOBODY = ("image", "snapshot")
#: Parameters of EC2's calls that name what is checked; `.n` is any number.
_NAMED = {
    "AllocateAddress": (),
    "AssociateRouteTable": ("RouteTableId", "SubnetId", "GatewayId"),
    "AttachInternetGateway": ("InternetGatewayId", "VpcId"),
    "AttachNetworkInterface": ("InstanceId", "NetworkInterfaceId"),
    "AttachVolume": ("InstanceId", "VolumeId"),
    "AuthorizeSecurityGroupEgress": ("GroupId",),
    "AuthorizeSecurityGroupIngress": ("GroupId",),
    "CreateInternetGateway": (),
    "CreateNatGateway": ("AllocationId", "SubnetId"),
    "CreateNetworkInterface": ("SubnetId", "SecurityGroupId.n"),
    "CreateRoute": ("RouteTableId",),
    "CreateRouteTable": ("VpcId",),
    "CreateSecurityGroup": ("VpcId",),
    "CreateSnapshot": ("VolumeId",),
    "CreateSubnet": ("VpcId",),
    "CreateTags": ("ResourceId.n",),
    "CreateVolume": ("SnapshotId",),
    "CreateVpc": (),
    "DeleteInternetGateway": ("InternetGatewayId",),
    "DeleteNatGateway": ("NatGatewayId",),
    "DeleteNetworkInterface": ("NetworkInterfaceId",),
    "DeleteRoute": ("RouteTableId",),
    "DeleteRouteTable": ("RouteTableId",),
    "DeleteSecurityGroup": ("GroupId",),
    "DeleteSnapshot": ("SnapshotId",),
    "DeleteSubnet": ("SubnetId",),
    "DeleteTags": ("ResourceId.n",),
    "DeleteVolume": ("VolumeId",),
    "DeleteVpc": ("VpcId",),
    "DetachInternetGateway": ("InternetGatewayId", "VpcId"),
    "DetachVolume": ("InstanceId", "VolumeId"),
    "DisassociateRouteTable": ("AssociationId",),
    "ModifyNetworkInterfaceAttribute": ("NetworkInterfaceId", "SecurityGroupId.n"),
    "ModifySubnetAttribute": ("SubnetId",),
    "ModifyVolume": ("VolumeId",),
    "ModifyVpcAttribute": ("VpcId",),
    "ReleaseAddress": ("AllocationId",),
    "ReplaceRoute": ("RouteTableId",),
    "ReplaceRouteTableAssociation": ("AssociationId", "RouteTableId"),
    "RevokeSecurityGroupEgress": ("GroupId",),
    "RevokeSecurityGroupIngress": ("GroupId",),
    "RunInstances": (
        "ImageId",
        "SubnetId",
        "SecurityGroupId.n",
        "NetworkInterface.n.SubnetId",
        "NetworkInterface.n.SecurityGroupId.n",
        "BlockDeviceMapping.n.Ebs.SnapshotId",
    ),
    "TerminateInstances": ("InstanceId.n",),
}
#: Types of what a call of EC2 makes.
_MADE = {
    "AllocateAddress": ("elastic-ip",),
    "CreateInternetGateway": ("internet-gateway",),
    "CreateNatGateway": ("natgateway",),
    "CreateNetworkInterface": ("network-interface",),
    "CreateRouteTable": ("route-table",),
    "CreateSecurityGroup": ("security-group",),
    "CreateSnapshot": ("snapshot",),
    "CreateSubnet": ("subnet",),
    "CreateVolume": ("volume",),
    "CreateVpc": ("vpc",),
    "RunInstances": ("instance", "network-interface", "volume"),
}
_PATTERNS = {
    action: re.compile("|".join(re.escape(one).replace(r"\.n", r"\.\d+") for one in names) or r"(?!)")
    for action, names in _NAMED.items()
}
_SPECIFIED = re.compile(r"^TagSpecification\.(\d+)\.ResourceType$")
_TAG_KEYS = (re.compile(r"^Tag\.(\d+)\.Key$"), re.compile(r"^Tags\.member\.(\d+)\.Key$"))
_EFS_PATH = re.compile(r"/(?P<kind>access-point|file-system)s/(?P<id>[a-z]+-[0-9a-f]+)")
_BALANCING_ARN = re.compile(r"^(?:LoadBalancerArn|ListenerArn|RuleArn|TargetGroupArn|ResourceArns\.member\.\d+)$")
_BALANCING_NAME = re.compile(r"^(?:LoadBalancerName|LoadBalancerNames\.member\.\d+)$")
#: What a load balancer's type is called in its ARN.
_BALANCERS = {"application": "app", "gateway": "gwy", "network": "net"}
_READS = ("Describe", "Get", "List")


def resources(request: AwsRequest, account: str, associations: Associations) -> list[Resource]:
    """What a call is about; what it makes comes last."""
    table = _SERVICES.get(request.service)
    found = list(table(request, account, associations)) if table else []
    return found or [Resource(None, sets=tags(request))]


def tags(request: AwsRequest) -> dict[str, str]:
    """The tags that a request sets, on whatever."""
    listed = request.parameters.get("Tags")
    if isinstance(listed, list):
        return {one["Key"]: one.get("Value", "") for one in listed if "Key" in one}
    found = _pairs(request, _TAG_KEYS[0]) | _pairs(request, _TAG_KEYS[1])
    for _, specified in _specified(request):
        found |= specified
    return found


def _pairs(request: AwsRequest, pattern: re.Pattern[str]) -> dict[str, str]:
    named = ((name, key) for name, key in request.parameters.items() if pattern.match(name))
    return {key: request.parameters.get(f"{name.removesuffix('.Key')}.Value", "") for name, key in named}


def _specified(request: AwsRequest) -> Iterator[tuple[str, dict[str, str]]]:
    """Types, and the tags that what is made of each is to have."""
    for name, kind in request.parameters.items():
        number = _SPECIFIED.match(name)
        if number:
            yield kind, _pairs(request, re.compile(rf"^TagSpecification\.{number[1]}\.Tag\.\d+\.Key$"))


def _ec2(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    if request.action.startswith(_READS):
        yield Resource("*")
    pattern = _PATTERNS.get(request.action)
    if pattern is None:
        return
    sets = tags(request) if request.action in ("CreateTags", "DeleteTags") else {}
    for name, value in request.parameters.items():
        if pattern.fullmatch(name):
            for one in associations(value) if name == "AssociationId" else [value]:
                yield Resource(_ec2_arn(request, account, _TYPES.get(one.partition("-")[0], "*"), one), sets=sets)
    if request.action == "RunInstances" and "KeyName" in request.parameters:
        yield Resource(_ec2_arn(request, account, "key-pair", request.parameters["KeyName"]))
    specified = dict(_specified(request))
    for kind in _MADE.get(request.action, ()):
        yield Resource(_ec2_arn(request, account, kind, NEW), made=True, sets=specified.get(kind, {}))


def _ec2_arn(request: AwsRequest, account: str, kind: str, name: str) -> str:
    return f"arn:aws:ec2:{request.region}:{'' if kind in _OF_NOBODY else account}:{kind}/{name}"


def _classic(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    if request.action.startswith(_READS):
        yield Resource("*")
        return
    makes = request.action == "CreateLoadBalancer"
    for name, value in request.parameters.items():
        if _BALANCING_NAME.match(name):
            yield Resource(_balancing_arn(request, account, f"loadbalancer/{value}"), made=makes, sets=tags(request))


def _balancing(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    if request.action.startswith(_READS):
        yield Resource("*")
        return
    named = (value for key, value in request.parameters.items() if _BALANCING_ARN.match(key))
    yield from (Resource(value, sets=tags(request)) for value in named)
    name = request.parameters.get("Name", "")
    if request.action == "CreateLoadBalancer":
        kind = _BALANCERS.get(request.parameters.get("Type", ""), "app")
        arn = _balancing_arn(request, account, f"loadbalancer/{kind}/{name}/{NEW}")
        yield Resource(arn, made=True, sets=tags(request))
    if request.action == "CreateTargetGroup":
        arn = _balancing_arn(request, account, f"targetgroup/{name}/{NEW}")
        yield Resource(arn, made=True, sets=tags(request))


def listener(request: AwsRequest) -> Resource | None:
    """The listener that a call makes: for its tags alone it is checked."""
    if request.service != "elbv2" or request.action != "CreateListener":
        return None
    of = request.parameters.get("LoadBalancerArn", "").replace(":loadbalancer/", ":listener/")
    return Resource(f"{of}/{NEW}", made=True, sets=tags(request))


def _balancing_arn(request: AwsRequest, account: str, name: str) -> str:
    return f"arn:aws:elasticloadbalancing:{request.region}:{account}:{name}"


def _s3(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    if request.action != "ListBuckets":
        yield Resource(f"arn:aws:s3:::{request.parameters['path'].strip('/')}")


def _efs(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    named = _EFS_PATH.search(request.parameters["path"])
    if named:
        arn = f"arn:aws:elasticfilesystem:{request.region}:{account}:{named['kind']}/{named['id']}"
        yield Resource(arn, sets=tags(request))


def _secrets(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    makes = request.action == "CreateSecret"
    name = request.parameters.get("Name" if makes else "SecretId", "")
    if name:
        arn = name if name.startswith("arn:") else f"arn:aws:secretsmanager:{request.region}:{account}:secret:{name}-AbCdEf"
        yield Resource(arn, made=makes, sets=tags(request))


def _iam(request: AwsRequest, account: str, associations: Associations) -> Iterator[Resource]:
    named = request.parameters.get("OpenIDConnectProviderArn")
    if named:
        yield Resource(named, sets=tags(request))
    elif request.action == "CreateOpenIDConnectProvider":
        url = request.parameters.get("Url", "").removeprefix("https://")
        yield Resource(f"arn:aws:iam::{account}:oidc-provider/{url}", made=True, sets=tags(request))


_SERVICES = {
    "ec2": _ec2,
    "elb": _classic,
    "elbv2": _balancing,
    "elasticfilesystem": _efs,
    "iam": _iam,
    "s3": _s3,
    "secretsmanager": _secrets,
    "tagging": lambda request, account, associations: iter([Resource("*")]),
}
