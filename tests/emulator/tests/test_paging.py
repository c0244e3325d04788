"""Pages: MaxResults and NextToken wherever EC2 documents them, and page sizes forced by a flag."""

import pytest
from conftest import refused, settle
from emulator.settings import configure

ROLE = [{"Key": "role", "Value": "test"}]


def _tagged(kind):
    return [{"ResourceType": kind, "Tags": ROLE}]


@pytest.fixture
def many(aws, network):
    """Seven of most kinds."""
    ec2 = aws.ec2
    for n in range(7):
        ec2.create_vpc(CidrBlock=f"10.{n + 20}.0.0/16", TagSpecifications=_tagged("vpc"))
        ec2.create_subnet(VpcId=network.vpc, CidrBlock=f"10.0.{n + 10}.0/24", TagSpecifications=_tagged("subnet"))
        ec2.create_internet_gateway(TagSpecifications=_tagged("internet-gateway"))
        ec2.create_route_table(VpcId=network.vpc, TagSpecifications=_tagged("route-table"))
        group = {"GroupName": f"g{n}", "Description": "g", "VpcId": network.vpc}
        ec2.create_security_group(**group, TagSpecifications=_tagged("security-group"))
        ec2.create_network_interface(SubnetId=network.subnet, TagSpecifications=_tagged("network-interface"))
        ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=_tagged("volume"))
        address = ec2.allocate_address(Domain="vpc", TagSpecifications=_tagged("elastic-ip"))["AllocationId"]
        nat = {"SubnetId": network.subnet, "AllocationId": address}
        ec2.create_nat_gateway(**nat, TagSpecifications=_tagged("natgateway"))


KINDS = {
    "describe_vpcs": "Vpcs",
    "describe_subnets": "Subnets",
    "describe_internet_gateways": "InternetGateways",
    "describe_route_tables": "RouteTables",
    "describe_security_groups": "SecurityGroups",
    "describe_network_interfaces": "NetworkInterfaces",
    "describe_volumes": "Volumes",
    "describe_nat_gateways": "NatGateways",
}


def _pages(call, key, **fields):
    token, pages = None, []
    while True:
        answer = call(**fields, **({"NextToken": token} if token else {}))
        pages.append(answer[key])
        token = answer.get("NextToken")
        if not token:
            return pages


def test_every_describe_honours_its_limit(aws, many):
    for action, key in KINDS.items():
        filters = [{"Name": "tag-key", "Values": ["ro*"]}]
        name = "Filter" if action == "describe_nat_gateways" else "Filters"
        pages = _pages(getattr(aws.ec2, action), key, MaxResults=5, **{name: filters})
        assert [len(page) for page in pages] == [5, 2], action
        ids = [one[next(iter(k for k in one if k.endswith("Id") and k != "VpcId" or key == "Vpcs" and k == "VpcId"))]
               for page in pages for one in page]  # fmt: skip
        assert len(ids) == 7, action


def test_pages_are_forced_without_a_limit(aws, many):
    configure(page_size=3)
    for action, key in KINDS.items():
        name = "Filter" if action == "describe_nat_gateways" else "Filters"
        pages = _pages(getattr(aws.ec2, action), key, **{name: [{"Name": "tag:role", "Values": ["test"]}]})
        assert [len(page) for page in pages] == [3, 3, 1], action


def test_addresses_have_no_pages(aws, many):
    configure(page_size=3)
    assert len(aws.ec2.describe_addresses()["Addresses"]) == 7


def test_named_ids_are_answered_in_one_page(aws, many):
    configure(page_size=3)
    filters = [{"Name": "tag:role", "Values": ["test"]}]
    ids = [one["VpcId"] for page in _pages(aws.ec2.describe_vpcs, "Vpcs", Filters=filters) for one in page]
    assert len(aws.ec2.describe_vpcs(VpcIds=ids)["Vpcs"]) == 7


def test_instances_are_paged_one_by_one_also_within_a_reservation(aws, launch):
    launch(MinCount=7, MaxCount=7)
    launch()
    pages = _pages(aws.ec2.describe_instances, "Reservations", MaxResults=5)
    counts = [sum(len(one["Instances"]) for one in page) for page in pages]
    assert counts == [5, 3]
    ids = {i["InstanceId"] for page in pages for one in page for i in one["Instances"]}
    assert len(ids) == 8


def test_a_page_goes_on_where_the_last_one_ended_though_things_were_deleted(aws, network):
    groups = [
        aws.ec2.create_security_group(GroupName=f"g{n}", Description="g", VpcId=network.vpc)["GroupId"] for n in range(8)
    ]
    given = {"Filters": [{"Name": "group-name", "Values": ["g?"]}], "MaxResults": 5}
    first = aws.ec2.describe_security_groups(**given)
    aws.ec2.delete_security_group(GroupId=groups[0])
    rest = aws.ec2.describe_security_groups(**given, NextToken=first["NextToken"])["SecurityGroups"]
    assert [one["GroupId"] for one in rest] == groups[5:]


def test_limits_out_of_range_and_bad_tokens_are_refused(aws):
    refused("InvalidParameterValue", aws.ec2.describe_vpcs, MaxResults=4)
    refused("InvalidParameterValue", aws.ec2.describe_vpcs, MaxResults=1001)
    refused("InvalidNextToken", aws.ec2.describe_vpcs, NextToken="nonsense")


def test_a_limit_and_ids_exclude_each_other(aws, launch):
    instance = launch()["InstanceId"]
    refused("InvalidParameterCombination", aws.ec2.describe_instances, InstanceIds=[instance], MaxResults=5)


def test_load_balancers_are_paged(aws, network):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    for n in range(5):
        aws.elb.create_load_balancer(LoadBalancerName=f"c{n}", Listeners=[listener], Subnets=[network.subnet])
        aws.elbv2.create_load_balancer(Name=f"n{n}", Type="network", Subnets=[network.subnet])
    first = aws.elb.describe_load_balancers(PageSize=3)
    rest = aws.elb.describe_load_balancers(PageSize=3, Marker=first["NextMarker"])
    names = [one["LoadBalancerName"] for page in (first, rest) for one in page["LoadBalancerDescriptions"]]
    assert names == [f"c{n}" for n in range(5)] and "NextMarker" not in rest
    configure(page_size=2)
    pages = list(aws.elbv2.get_paginator("describe_load_balancers").paginate())
    assert [len(page["LoadBalancers"]) for page in pages] == [2, 2, 1]


def test_the_tagging_api_is_paged(aws, network):
    aws.ec2.create_tags(Resources=[network.vpc, *network.subnets, network.group], Tags=ROLE)
    configure(page_size=3)
    pages = list(
        aws.resourcegroupstaggingapi.get_paginator("get_resources").paginate(
            TagFilters=[{"Key": "role", "Values": ["test"]}]
        )
    )
    assert [len(page["ResourceTagMappingList"]) for page in pages] == [3, 1]


def test_tag_keys_match_with_wildcards_on_every_kind(aws, network, many):
    settle()
    tag = [{"Key": "sigs.k8s.io/cluster-api-provider-aws/cluster/c1", "Value": "owned"}]
    address = aws.ec2.describe_addresses()["Addresses"][0]["AllocationId"]
    nat = aws.ec2.describe_nat_gateways()["NatGateways"][0]["NatGatewayId"]
    aws.ec2.create_tags(Resources=[network.vpc, network.subnet, network.group, network.gateway, address, nat], Tags=tag)
    filters = [{"Name": "tag-key", "Values": ["sigs.k8s.io/cluster-api-provider-aws/cluster/*"]}]
    found = [
        len(aws.ec2.describe_vpcs(Filters=filters)["Vpcs"]),
        len(aws.ec2.describe_subnets(Filters=filters)["Subnets"]),
        len(aws.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]),
        len(aws.ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]),
        len(aws.ec2.describe_addresses(Filters=filters)["Addresses"]),
        len(aws.ec2.describe_nat_gateways(Filter=filters)["NatGateways"]),
    ]
    assert found == [1] * 6
