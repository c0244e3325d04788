"""What a role may do, once a web identity or `--enforce-iam` makes its policies count."""

import json
from datetime import timedelta

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from conftest import refused, settle
from issuer import Issuer

from emulator import rights
from emulator.request import session_of
from emulator.settings import configure

_numbers = iter(range(10**6))
ZONE = "us-east-1a"
MANAGED = "arn:aws:iam::aws:policy"


@pytest.fixture
def pod(aws, endpoint):
    """Makes a role that a service account may assume, with an inline policy, and gives clients of a pod's session."""

    def make(*statements, **role):
        issuer = Issuer(f"enforced-{next(_numbers)}")
        issuer.publish(aws.s3)
        provider = aws.iam.create_open_id_connect_provider(Url=issuer.url, ClientIDList=["sts.amazonaws.com"])
        trust = issuer.trust(provider["OpenIDConnectProviderArn"])
        arn = aws.iam.create_role(RoleName="pod", AssumeRolePolicyDocument=trust, **role)["Role"]["Arn"]
        if statements:
            aws.iam.put_role_policy(RoleName="pod", PolicyName="inline", PolicyDocument=_document(*statements))
        where = {"endpoint_url": endpoint, "region_name": "us-east-1"}
        sts = boto3.client("sts", **where, config=Config(signature_version=UNSIGNED))
        held = sts.assume_role_with_web_identity(RoleArn=arn, RoleSessionName="pod", WebIdentityToken=issuer.token())
        held = held["Credentials"]
        keys = {
            "aws_access_key_id": held["AccessKeyId"],
            "aws_secret_access_key": held["SecretAccessKey"],
            "aws_session_token": held["SessionToken"],
        }
        once = Config(retries={"total_max_attempts": 1})
        return lambda service: boto3.client(service, **where, **keys, config=once)

    yield make
    configure(enforce_iam=False)


def _document(*statements):
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def _allow(*actions, **fields):
    return {"Effect": "Allow", "Action": list(actions), "Resource": "*", **fields}


def _deny(*actions, **fields):
    return {**_allow(*actions, **fields), "Effect": "Deny"}


def test_only_what_a_policy_allows_is_done(pod):
    client = pod(_allow("ec2:Describe*", "ec2:CREATEVOLUME"))
    ec2 = client("ec2")
    ec2.describe_volumes()
    ec2.create_volume(AvailabilityZone=ZONE, Size=1)
    error = refused("UnauthorizedOperation", ec2.create_vpc, CidrBlock="10.0.0.0/16")
    assert "assumed-role/pod/pod is not authorized to perform: ec2:CreateVpc" in str(error)


def test_each_service_has_its_name_in_policies_and_its_own_error(pod):
    calls = {
        "elasticloadbalancing:DescribeLoadBalancers": ("elbv2", "describe_load_balancers", {}, "AccessDenied"),
        "elasticfilesystem:DescribeFileSystems": ("efs", "describe_file_systems", {}, "AccessDeniedException"),
        "iam:ListRoles": ("iam", "list_roles", {}, "AccessDenied"),
        "secretsmanager:ListSecrets": ("secretsmanager", "list_secrets", {}, "AccessDeniedException"),
        "tag:GetResources": ("resourcegroupstaggingapi", "get_resources", {}, "AccessDeniedException"),
        "s3:ListAllMyBuckets": ("s3", "list_buckets", {}, "AccessDenied"),
    }
    client = pod(_allow(*calls), _deny("none:*"))
    for service, method, fields, _ in calls.values():
        getattr(client(service), method)(**fields)


@pytest.mark.parametrize(
    ("service", "method", "code"),
    [
        ("elb", "describe_load_balancers", "AccessDenied"),
        ("elbv2", "describe_load_balancers", "AccessDenied"),
        ("efs", "describe_file_systems", "AccessDeniedException"),
        ("iam", "list_roles", "AccessDenied"),
        ("secretsmanager", "list_secrets", "AccessDeniedException"),
        ("resourcegroupstaggingapi", "get_resources", "AccessDeniedException"),
        ("s3", "list_buckets", "AccessDenied"),
    ],
)
def test_a_role_without_policies_may_do_nothing_but_ask_who_it_is(pod, service, method, code):
    client = pod()
    refused(code, getattr(client(service), method))
    assert "assumed-role/pod/" in client("sts").get_caller_identity()["Arn"]


def test_a_deny_wins_over_an_attached_policy(aws, pod):
    client = pod(_deny("ec2:CreateVolume"))
    aws.iam.attach_role_policy(RoleName="pod", PolicyArn="arn:aws:iam::aws:policy/AmazonEC2FullAccess")
    client("ec2").describe_volumes()
    refused("UnauthorizedOperation", client("ec2").create_volume, AvailabilityZone=ZONE, Size=1)


def test_a_boundary_limits_what_policies_allow(aws, pod):
    boundary = aws.iam.create_policy(PolicyName="limit", PolicyDocument=_document(_allow("ec2:Describe*")))
    client = pod(_allow("ec2:*"), PermissionsBoundary=boundary["Policy"]["Arn"])
    client("ec2").describe_volumes()
    refused("UnauthorizedOperation", client("ec2").create_volume, AvailabilityZone=ZONE, Size=1)


def test_policies_count_as_they_are_now(aws, pod):
    client = pod()
    refused("UnauthorizedOperation", client("ec2").describe_volumes)
    aws.iam.put_role_policy(RoleName="pod", PolicyName="more", PolicyDocument=_document(_allow("ec2:*")))
    client("ec2").describe_volumes()
    aws.iam.delete_role_policy(RoleName="pod", PolicyName="more")
    aws.iam.delete_role(RoleName="pod")
    refused("UnauthorizedOperation", client("ec2").describe_volumes)


def test_tags_on_what_is_created_need_a_permission_of_their_own(aws, pod):
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "cluster", "Value": "one"}]}]
    client = pod(_allow("ec2:CreateVolume"))
    refused("UnauthorizedOperation", client("ec2").create_volume, AvailabilityZone=ZONE, Size=1, TagSpecifications=tags)
    on_create = _allow("ec2:CreateTags", Condition={"StringEquals": {"ec2:CreateAction": ["CreateVolume"]}})
    aws.iam.put_role_policy(RoleName="pod", PolicyName="tags", PolicyDocument=_document(on_create))
    volume = client("ec2").create_volume(AvailabilityZone=ZONE, Size=1, TagSpecifications=tags)["VolumeId"]
    refused("UnauthorizedOperation", client("ec2").create_tags, Resources=[volume], Tags=tags[0]["Tags"])


def test_conditions_on_tags_of_the_request_count(pod):
    tagged = {"StringLike": {"aws:RequestTag/kubernetes.io/cluster/one": "owned"}}
    client = pod(_allow("ec2:CreateVolume", Condition=tagged), _allow("ec2:CreateTags"))
    refused("UnauthorizedOperation", client("ec2").create_volume, AvailabilityZone=ZONE, Size=1)
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "kubernetes.io/cluster/one", "Value": "owned"}]}]
    client("ec2").create_volume(AvailabilityZone=ZONE, Size=1, TagSpecifications=tags)


def test_what_is_conditioned_on_what_nobody_knows_is_not_allowed(aws, pod):
    unknown = {"StringEquals": {"aws:SourceVpce": "vpce-1"}}
    client = pod(_allow("ec2:CreateVolume", Condition=unknown), _allow("ec2:DescribeVolumes"))
    client("ec2").describe_volumes()
    refused("UnauthorizedOperation", client("ec2").create_volume, AvailabilityZone=ZONE, Size=1)
    document = _document(_deny("ec2:DescribeVolumes", Condition=unknown))
    aws.iam.put_role_policy(RoleName="pod", PolicyName="no", PolicyDocument=document)
    refused("UnauthorizedOperation", client("ec2").describe_volumes)


def test_resources_of_ec2_and_load_balancing_count_where_the_call_names_them(aws, network, pod):
    volumes = _allow("ec2:CreateVolume", "ec2:DeleteVolume", "ec2:CreateTags", Resource="arn:aws:ec2:*:*:volume/*")
    group = aws.elbv2.create_target_group(Name="a", Protocol="TCP", Port=1, VpcId=network.vpc)["TargetGroups"][0]
    other = aws.elbv2.create_target_group(Name="b", Protocol="TCP", Port=1, VpcId=network.vpc)["TargetGroups"][0]
    balancing = _allow("elasticloadbalancing:*", Resource="arn:aws:elasticloadbalancing:*:*:targetgroup/a/*")
    client = pod(volumes, _allow("ec2:CreateVolume", Resource="arn:aws:ec2:*:*:snapshot/*"), balancing)
    ec2, elbv2 = client("ec2"), client("elbv2")
    volume = ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    settle()
    tags = [{"Key": "a", "Value": "b"}]
    ec2.create_tags(Resources=[volume], Tags=tags)
    refused("UnauthorizedOperation", ec2.create_tags, Resources=[volume, network.subnet], Tags=tags)
    ec2.delete_volume(VolumeId=volume)
    elbv2.delete_target_group(TargetGroupArn=group["TargetGroupArn"])
    refused("AccessDenied", elbv2.delete_target_group, TargetGroupArn=other["TargetGroupArn"])


def test_tags_of_a_resource_count_where_the_call_names_it(aws, network, pod):
    tagged = [{"Key": "elbv2.k8s.aws/cluster", "Value": "one"}]
    groups = {
        name: aws.elbv2.create_target_group(Name=name, Protocol="TCP", Port=1, VpcId=network.vpc, Tags=tags)
        for name, tags in (("own", tagged), ("foreign", [{"Key": "a", "Value": "b"}]))
    }
    arns = {name: one["TargetGroups"][0]["TargetGroupArn"] for name, one in groups.items()}
    own = {"Null": {"aws:ResourceTag/elbv2.k8s.aws/cluster": "false"}}
    elbv2 = pod(_allow("elasticloadbalancing:*", Condition=own))("elbv2")
    refused("AccessDenied", elbv2.delete_target_group, TargetGroupArn=arns["foreign"])
    elbv2.delete_target_group(TargetGroupArn=arns["own"])


@pytest.mark.parametrize("policy", ["service-role/AmazonEBSCSIDriverPolicy", "AmazonEBSCSIDriverPolicyV2"])
def test_awss_policies_for_volumes_let_the_driver_work_on_its_own(aws, pod, launch, policy):
    client = pod()
    aws.iam.attach_role_policy(RoleName="pod", PolicyArn=f"{MANAGED}/{policy}")
    ec2, instance = client("ec2"), launch()["InstanceId"]
    settle()
    refused("UnauthorizedOperation", ec2.create_volume, AvailabilityZone=ZONE, Size=1)
    own = [{"ResourceType": "volume", "Tags": [{"Key": "ebs.csi.aws.com/cluster", "Value": "true"}]}]
    volume = ec2.create_volume(AvailabilityZone=ZONE, Size=1, TagSpecifications=own)["VolumeId"]
    settle()
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/xvdba")
    ec2.modify_volume(VolumeId=volume, Size=2)
    ec2.detach_volume(VolumeId=volume)
    settle()
    ec2.delete_volume(VolumeId=volume)
    refused("UnauthorizedOperation", ec2.terminate_instances, InstanceIds=[instance])
    foreign = aws.ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    settle()
    refused("UnauthorizedOperation", ec2.delete_volume, VolumeId=foreign)
    if policy.endswith("V2"):
        refused("UnauthorizedOperation", ec2.modify_volume, VolumeId=foreign, Size=2)
        refused("UnauthorizedOperation", ec2.attach_volume, VolumeId=foreign, InstanceId=instance, Device="/dev/xvdba")


def test_awss_newer_policy_for_volumes_lets_the_driver_work_on_its_own(aws, pod, launch):
    client = pod()
    aws.iam.attach_role_policy(RoleName="pod", PolicyArn=f"{MANAGED}/AmazonEBSCSIDriverPolicyV2")
    ec2, instance = client("ec2"), launch()["InstanceId"]
    settle()
    keys = {"ebs.csi.aws.com/cluster": "true", "CSIVolumeName": "pvc-1", "team": "a"}
    own = [{"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in keys.items()]}]
    volume = ec2.create_volume(AvailabilityZone=ZONE, Size=1, TagSpecifications=own)["VolumeId"]
    settle()
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/xvdba")
    ec2.detach_volume(VolumeId=volume)
    settle()
    ec2.create_tags(Resources=[volume], Tags=[{"Key": "owner", "Value": "b"}])
    claim = [{"Key": "kubernetes.io/created-for/pvc/name", "Value": "c"}]
    refused("UnauthorizedOperation", ec2.create_tags, Resources=[volume], Tags=claim)
    ec2.delete_volume(VolumeId=volume)


def test_awss_policy_for_file_systems_lets_the_driver_work_on_its_own(aws, pod):
    system = aws.efs.create_file_system(CreationToken="one")["FileSystemId"]
    settle()
    client = pod()
    aws.iam.attach_role_policy(RoleName="pod", PolicyArn=f"{MANAGED}/service-role/AmazonEFSCSIDriverPolicy")
    efs = client("efs")
    efs.describe_mount_targets(FileSystemId=system)
    refused("AccessDeniedException", efs.create_access_point, FileSystemId=system, ClientToken="a")
    own = [{"Key": "efs.csi.aws.com/cluster", "Value": "true"}]
    point = efs.create_access_point(FileSystemId=system, ClientToken="a", Tags=own)["AccessPointId"]
    efs.delete_access_point(AccessPointId=point)
    more = [*own, {"Key": "team", "Value": "a"}]
    refused("AccessDeniedException", efs.create_access_point, FileSystemId=system, ClientToken="c", Tags=more)
    foreign = aws.efs.create_access_point(FileSystemId=system, ClientToken="b")["AccessPointId"]
    refused("AccessDeniedException", efs.delete_access_point, AccessPointId=foreign)
    refused("AccessDeniedException", efs.delete_file_system, FileSystemId=system)


def test_awss_policy_for_a_cni_lets_it_add_interfaces(aws, network, pod, launch):
    instance, client = launch()["InstanceId"], pod()
    settle()
    aws.iam.attach_role_policy(RoleName="pod", PolicyArn=f"{MANAGED}/AmazonEKS_CNI_Policy")
    ec2 = client("ec2")
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "cluster.k8s.amazonaws.com/name", "Value": "one"}]}]
    made = ec2.create_network_interface(SubnetId=network.subnet, Groups=[network.group], TagSpecifications=tags)
    made = made["NetworkInterface"]["NetworkInterfaceId"]
    ec2.attach_network_interface(NetworkInterfaceId=made, InstanceId=instance, DeviceIndex=1)
    ec2.assign_private_ip_addresses(NetworkInterfaceId=made, Ipv4PrefixCount=1)
    refused("UnauthorizedOperation", ec2.delete_security_group, GroupId=network.group)


def test_resources_of_s3_count(aws, pod):
    name = f"enforced-bucket-{next(_numbers)}"
    aws.s3.create_bucket(Bucket=name)
    client = pod(_allow("s3:PutObject", "s3:GetObject", Resource=f"arn:aws:s3:::{name}/one/*"))
    client("s3").put_object(Bucket=name, Key="one/a", Body=b"")
    client("s3").get_object(Bucket=name, Key="one/a")
    refused("AccessDenied", client("s3").put_object, Bucket=name, Key="two/a", Body=b"")
    refused("AccessDenied", client("s3").list_objects_v2, Bucket=name)


def test_others_are_checked_only_when_asked(aws, endpoint, pod):
    aws.iam.create_user(UserName="user")
    key = aws.iam.create_access_key(UserName="user")["AccessKey"]
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    ec2 = boto3.client("ec2", endpoint_url=endpoint, region_name="us-east-1", **keys)
    ec2.describe_volumes()
    configure(enforce_iam=True)
    refused("UnauthorizedOperation", ec2.describe_volumes)
    aws.iam.put_user_policy(UserName="user", PolicyName="p", PolicyDocument=_document(_allow("ec2:Describe*")))
    ec2.describe_volumes()
    aws.ec2.describe_volumes()


def test_a_session_ends(pod):
    ec2 = pod(_allow("ec2:*"))("ec2")
    ec2.describe_volumes()
    session_of(ec2._request_signer._credentials.access_key).expiration -= timedelta(hours=1)
    refused("RequestExpired", ec2.describe_volumes)


TAGGED = [{"Key": "team", "Value": "a"}]
OWN = {"Null": {"aws:ResourceTag/team": "false"}}
MADE = {"Null": {"aws:RequestTag/team": "false"}}
IMAGE = "ami-bed13630000000000"


def _specified(*kinds):
    return [{"ResourceType": kind, "Tags": TAGGED} for kind in kinds]


def _ec2(*kinds):
    return [f"arn:aws:ec2:*:*:{kind}/*" for kind in kinds]


def test_every_resource_that_a_call_names_has_to_be_allowed(aws, network, pod):
    aws.ec2.create_tags(Resources=[network.vpc], Tags=TAGGED)
    ec2 = pod(
        _allow("ec2:CreateSubnet", Resource=_ec2("vpc"), Condition=OWN),
        _allow("ec2:CreateSubnet", Resource=_ec2("subnet"), Condition=MADE),
        _allow("ec2:CreateTags", Condition={**MADE, "StringEquals": {"ec2:CreateAction": "CreateSubnet"}}),
    )("ec2")
    other = aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    asked = {"CidrBlock": "10.0.9.0/24", "TagSpecifications": _specified("subnet")}
    error = refused("UnauthorizedOperation", ec2.create_subnet, VpcId=other, **asked)
    assert f"on resource: arn:aws:ec2:us-east-1:{aws.sts.get_caller_identity()['Account']}:vpc/{other}" in str(error)
    refused("UnauthorizedOperation", ec2.create_subnet, VpcId=network.vpc, CidrBlock="10.0.9.0/24")
    made = ec2.create_subnet(VpcId=network.vpc, **asked)["Subnet"]["SubnetId"]
    refused("UnauthorizedOperation", ec2.create_tags, Resources=[made], Tags=TAGGED)


def test_what_a_launch_makes_and_what_it_uses_are_allowed_apart(aws, network, pod):
    made = _allow("ec2:RunInstances", Resource=_ec2("instance", "network-interface", "volume"), Condition=MADE)
    used = _allow(
        "ec2:RunInstances",
        Resource=["arn:aws:ec2:*::image/*", *_ec2("key-pair", "security-group", "subnet")],
    )
    tags = _allow("ec2:CreateTags", Condition={"StringEquals": {"ec2:CreateAction": "RunInstances"}})
    ec2 = pod(made, used, tags)("ec2")
    interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "Groups": [network.group]}
    asked = {"ImageId": IMAGE, "InstanceType": "t3.large", "MinCount": 1, "MaxCount": 1, "KeyName": "default"}
    asked["NetworkInterfaces"] = [interface]
    for kinds in ([], ["instance", "volume"]):
        refused("UnauthorizedOperation", ec2.run_instances, **asked, TagSpecifications=_specified(*kinds))
    every = _specified("instance", "network-interface", "volume")
    ec2.run_instances(**asked, TagSpecifications=every)
    for without in ("key-pair", "security-group", "subnet"):
        fewer = {**used, "Resource": [one for one in used["Resource"] if without not in one]}
        aws.iam.put_role_policy(RoleName="pod", PolicyName="inline", PolicyDocument=_document(made, fewer, tags))
        error = refused("UnauthorizedOperation", ec2.run_instances, **asked, TagSpecifications=every)
        assert f":{without}/" in str(error)


def test_a_role_is_passed_to_an_instance_only_where_that_is_allowed(aws, network, pod):
    ec2 = pod(_allow("ec2:RunInstances"))("ec2")
    profile = "nodes.cluster-api-provider-aws.sigs.k8s.io"
    asked = {"ImageId": IMAGE, "InstanceType": "t3.large", "MinCount": 1, "MaxCount": 1, "SubnetId": network.subnet}
    ec2.run_instances(**asked)
    asked["IamInstanceProfile"] = {"Name": profile}
    assert f":role/{profile}" in str(refused("UnauthorizedOperation", ec2.run_instances, **asked))
    to_others = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    for conditions, fits in ((to_others, False), ({"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}, True)):
        passes = _allow("iam:PassRole", Resource=f"arn:aws:iam::*:role/{profile}", Condition=conditions)
        aws.iam.put_role_policy(RoleName="pod", PolicyName="pass", PolicyDocument=_document(passes))
        if fits:
            ec2.run_instances(**asked)
        else:
            refused("UnauthorizedOperation", ec2.run_instances, **asked)


def test_what_is_gone_has_no_tags_that_would_allow_anything(aws, network, pod):
    volume = aws.ec2.create_volume(AvailabilityZone=ZONE, Size=1, TagSpecifications=_specified("volume"))["VolumeId"]
    settle()
    ec2 = pod(_allow("ec2:DeleteVolume", Condition=OWN))("ec2")
    ec2.delete_volume(VolumeId=volume)
    settle()
    refused("UnauthorizedOperation", ec2.delete_volume, VolumeId="vol-0123456789abcdef0")


def test_an_association_is_of_its_route_table_and_its_subnet(aws, network, pod):
    table = aws.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    association = aws.ec2.associate_route_table(RouteTableId=table, SubnetId=network.subnet)["AssociationId"]
    ec2 = pod(_allow("ec2:DisassociateRouteTable", Condition=OWN))("ec2")
    for one in (table, network.subnet):
        refused("UnauthorizedOperation", ec2.disassociate_route_table, AssociationId=association)
        aws.ec2.create_tags(Resources=[one], Tags=TAGGED)
    ec2.disassociate_route_table(AssociationId=association)


def test_tags_of_classic_load_balancers_count(aws, network, pod):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 80}
    asked = {"Listeners": [listener], "Subnets": [network.subnet], "SecurityGroups": [network.group]}
    aws.elb.create_load_balancer(LoadBalancerName="foreign", **asked)
    role = _allow("iam:CreateServiceLinkedRole")
    made = [_allow("elasticloadbalancing:CreateLoadBalancer", Condition=MADE), _allow("elasticloadbalancing:AddTags")]
    client = pod(*made, _allow("elasticloadbalancing:DeleteLoadBalancer", Condition=OWN))
    elb = client("elb")
    error = refused("AccessDenied", elb.create_load_balancer, LoadBalancerName="own", Tags=TAGGED, **asked)
    assert "iam:CreateServiceLinkedRole" in str(error), "the first of an account"
    aws.iam.put_role_policy(RoleName="pod", PolicyName="role", PolicyDocument=_document(role))
    refused("AccessDenied", elb.create_load_balancer, LoadBalancerName="own", **asked)
    elb.create_load_balancer(LoadBalancerName="own", Tags=TAGGED, **asked)
    refused("AccessDenied", elb.delete_load_balancer, LoadBalancerName="foreign")
    elb.delete_load_balancer(LoadBalancerName="own")


def test_tags_on_a_listener_are_allowed_by_what_makes_it(aws, network, pod):
    group = aws.elbv2.create_target_group(Name="a", Protocol="TCP", Port=1, VpcId=network.vpc)["TargetGroups"][0]
    balancer = aws.elbv2.create_load_balancer(Name="a", Type="network", Subnets=[network.subnet], Tags=TAGGED)
    settle()
    forward = [{"Type": "forward", "TargetGroupArn": group["TargetGroupArn"]}]
    asked = {"LoadBalancerArn": balancer["LoadBalancers"][0]["LoadBalancerArn"], "Protocol": "TCP", "Port": 80}
    asked |= {"DefaultActions": forward, "Tags": TAGGED}
    client = pod(_allow("elasticloadbalancing:CreateListener", Condition=OWN))
    refused("AccessDenied", client("elbv2").create_listener, **asked)
    condition = {"StringEquals": {"elasticloadbalancing:CreateAction": "CreateListener"}}
    listeners = _allow(
        "elasticloadbalancing:AddTags",
        Resource="arn:aws:elasticloadbalancing:*:*:listener/net/*",
        Condition=condition,
    )
    aws.iam.put_role_policy(RoleName="pod", PolicyName="tags", PolicyDocument=_document(listeners))
    client("elbv2").create_listener(**asked)


def test_a_missing_object_is_forbidden_to_who_may_not_list_the_bucket(aws, pod):
    name = f"enforced-bucket-{next(_numbers)}"
    aws.s3.create_bucket(Bucket=name)
    client = pod(_allow("s3:GetObject", Resource=f"arn:aws:s3:::{name}/*"))
    refused("AccessDenied", client("s3").get_object, Bucket=name, Key="a")
    listing = _allow("s3:ListBucket", Resource=f"arn:aws:s3:::{name}")
    aws.iam.put_role_policy(RoleName="pod", PolicyName="list", PolicyDocument=_document(listing))
    refused("NoSuchKey", client("s3").get_object, Bucket=name, Key="a")


def test_an_identity_may_do_what_it_was_given_and_what_it_needed_of_that_is_known(endpoint, control):
    statements = [
        _allow("ec2:DescribeVolumes", "ec2:DescribeVpcs", "ec2:CreateVpc", Sid="Network"),
        _allow("ec2:DescribeVpcs", Sid="Twice"),
        _allow("s3:ListAllMyBuckets", Sid="Never"),
    ]
    configure(identities={"operator": [{"Statement": statements}]})
    try:
        keys = {"aws_access_key_id": "operator", "aws_secret_access_key": "secret"}
        ec2 = boto3.client("ec2", endpoint_url=endpoint, region_name="us-east-1", **keys)
        ec2.describe_volumes()
        ec2.describe_vpcs()
        refused("UnauthorizedOperation", ec2.create_security_group, GroupName="a", Description="a")
        assert control("rights?key=operator") == {"Network": ["ec2:DescribeVolumes"]}
    finally:
        configure(identities={})
        rights.clear()
