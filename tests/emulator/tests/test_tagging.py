"""The tagging API: what it lists, what it does not, and pages."""

import pytest
from conftest import refused, settle

OWNED = {"Key": "kubernetes.io/cluster/one", "Value": "owned"}


def _found(aws, *filters, **fields):
    answer = aws.resourcegroupstaggingapi.get_resources(TagFilters=list(filters), **fields)
    return [one["ResourceARN"] for one in answer["ResourceTagMappingList"]]


def _tags(kind, *tags):
    return [{"ResourceType": kind, "Tags": list(tags)}]


@pytest.fixture
def resources(aws, network):
    """One of each kind that a cluster leaves behind, tagged; ARNs by name."""
    ec2, account = aws.ec2, aws.sts.get_caller_identity()["Account"]
    own, where = f"arn:aws:ec2:us-east-1:{account}:", {"Subnets": network.subnets, "SecurityGroups": [network.group]}
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    aws.elb.create_load_balancer(LoadBalancerName="classic", Listeners=[listener], Tags=[OWNED], **where)
    balancers = {
        kind: aws.elbv2.create_load_balancer(Name=kind, Type=kind, Tags=[OWNED], **where)["LoadBalancers"][0]
        for kind in ("network", "application")
    }
    targets = aws.elbv2.create_target_group(Name="t", Protocol="TCP", Port=1, VpcId=network.vpc, Tags=[OWNED])
    group = ec2.create_security_group(
        GroupName="k8s", Description="k", VpcId=network.vpc, TagSpecifications=_tags("security-group", OWNED)
    )
    interface = ec2.create_network_interface(
        SubnetId=network.subnet, TagSpecifications=_tags("network-interface", OWNED)
    )
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=_tags("volume", OWNED))
    system = aws.efs.create_file_system(CreationToken="one", Tags=[OWNED])["FileSystemId"]
    settle()
    point = aws.efs.create_access_point(FileSystemId=system, ClientToken="a", Tags=[OWNED])
    return {
        "classic": f"arn:aws:elasticloadbalancing:us-east-1:{account}:loadbalancer/classic",
        "network": balancers["network"]["LoadBalancerArn"],
        "application": balancers["application"]["LoadBalancerArn"],
        "targets": targets["TargetGroups"][0]["TargetGroupArn"],
        "group": f"{own}security-group/{group['GroupId']}",
        "interface": f"{own}network-interface/{interface['NetworkInterface']['NetworkInterfaceId']}",
        "volume": f"{own}volume/{volume['VolumeId']}",
        "point": point["AccessPointArn"],
        "system": f"arn:aws:elasticfilesystem:us-east-1:{account}:file-system/{system}",
    }


def test_what_a_cluster_leaves_behind_is_found(aws, resources):
    wanted = {"Key": OWNED["Key"], "Values": ["owned"]}
    assert sorted(_found(aws, wanted)) == sorted(resources.values())
    kinds = {
        "elasticloadbalancing:loadbalancer": {"classic", "network", "application"},
        "elasticloadbalancing:targetgroup": {"targets"},
        "elasticloadbalancing": {"classic", "network", "application", "targets"},
        "ec2:security-group": {"group"},
        "ec2:network-interface": {"interface"},
        "ec2:volume": {"volume"},
        "elasticfilesystem:access-point": {"point"},
        "elasticfilesystem:file-system": {"system"},
    }
    for kind, names in kinds.items():
        assert set(_found(aws, wanted, ResourceTypeFilters=[kind])) == {resources[one] for one in names}, kind
    both = _found(aws, wanted, ResourceTypeFilters=["ec2:volume", "elasticfilesystem:access-point"])
    assert set(both) == {resources["volume"], resources["point"]}


def test_all_filters_must_fit_and_any_value_may(aws):
    tags = {"a": {"x": "1", "y": "1"}, "b": {"x": "2", "y": "1"}, "c": {"x": "1"}}
    made = {}
    for name, values in tags.items():
        given = [{"Key": key, "Value": value} for key, value in values.items()]
        volume = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=_tags("volume", *given))
        made[volume["VolumeId"]] = name

    def found(*filters):
        return {made[arn.rpartition("/")[2]] for arn in _found(aws, *filters)}

    assert found({"Key": "x"}) == {"a", "b", "c"}
    assert found({"Key": "x", "Values": ["1", "2"]}) == {"a", "b", "c"}
    assert found({"Key": "x", "Values": ["1"]}, {"Key": "y"}) == {"a"}
    assert found({"Key": "y", "Values": ["1"]}, {"Key": "x", "Values": ["2", "3"]}) == {"b"}
    assert found({"Key": "X"}) == set() == found({"Key": "x", "Values": ["1*"]})


def test_nothing_that_is_gone_is_listed(aws, resources, network, launch):
    instance = launch(TagSpecifications=_tags("instance", OWNED))["InstanceId"]
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(
        SubnetId=network.subnet, AllocationId=address, TagSpecifications=_tags("natgateway", OWNED)
    )["NatGateway"]["NatGatewayId"]
    assert len(_found(aws, {"Key": OWNED["Key"]})) == len(resources) + 2
    aws.elb.delete_load_balancer(LoadBalancerName="classic")
    for kind in ("network", "application"):
        aws.elbv2.delete_load_balancer(LoadBalancerArn=resources[kind])
    aws.elbv2.delete_target_group(TargetGroupArn=resources["targets"])
    name = {kind: arn.rpartition("/")[2] for kind, arn in resources.items()}
    aws.ec2.delete_security_group(GroupId=name["group"])
    aws.ec2.delete_network_interface(NetworkInterfaceId=name["interface"])
    aws.ec2.delete_volume(VolumeId=name["volume"])
    aws.efs.delete_access_point(AccessPointId=name["point"])
    aws.efs.delete_file_system(FileSystemId=name["system"])
    aws.ec2.terminate_instances(InstanceIds=[instance])
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    settle()
    assert _found(aws, {"Key": OWNED["Key"]}) == []


def test_what_has_no_tags_is_not_listed(aws, network):
    aws.elbv2.create_load_balancer(Name="api", Type="network", Subnets=[network.subnet])
    assert _found(aws) == []


def test_pages_bear_what_goes_between_them(aws):
    made = []
    for _ in range(7):
        volume = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=_tags("volume", OWNED))
        made.append(volume["VolumeId"])
    settle()
    tagging = aws.resourcegroupstaggingapi
    wanted = {"TagFilters": [{"Key": OWNED["Key"]}], "ResourcesPerPage": 3}
    first = tagging.get_resources(**wanted)
    aws.ec2.delete_volume(VolumeId=made[0])
    aws.ec2.delete_volume(VolumeId=made[5])
    second = tagging.get_resources(**wanted, PaginationToken=first["PaginationToken"])
    listed = [*first["ResourceTagMappingList"], *second["ResourceTagMappingList"]]
    shown = [one["ResourceARN"].rpartition("/")[2] for one in listed]
    assert shown == [*made[:5], made[6]] and second["PaginationToken"] == ""
    refused("PaginationTokenExpiredException", tagging.get_resources, PaginationToken="nonsense")


def test_impossible_questions_are_refused(aws):
    ask = aws.resourcegroupstaggingapi.get_resources
    refused("InvalidParameterException", ask, ResourcesPerPage=101)
    arn = ["arn:aws:ec2:us-east-1:1:volume/vol-1"]
    refused("InvalidParameterException", ask, ResourceARNList=arn, TagFilters=[{"Key": "a"}])


def test_lists_lag_with_other_reads(aws, network, control):
    def group(name):
        return aws.ec2.create_security_group(
            GroupName=name, Description="g", VpcId=network.vpc, TagSpecifications=_tags("security-group", OWNED)
        )["GroupId"]

    old = group("old")
    settle()
    control("faults", [{"kind": "read-lag", "seconds": 300}], method="PUT")
    aws.ec2.delete_security_group(GroupId=old)
    new = group("new")
    assert [one.rpartition("/")[2] for one in _found(aws, {"Key": OWNED["Key"]})] == [old]
    settle()
    assert [one.rpartition("/")[2] for one in _found(aws, {"Key": OWNED["Key"]})] == [new]
