"""Reads that are behind: EC2's eventual consistency, as its developer guide warns of it."""

import pytest
from conftest import refused
from emulator import clock

LAG = 100.0


@pytest.fixture
def lagging(control, network):
    """Starts the lag after the network is there and known."""
    control("faults", [{"kind": "read-lag", "seconds": LAG}], method="PUT")
    clock.skip(LAG + 1)
    yield
    control("faults", [], method="PUT")


def test_what_was_created_just_now_is_not_found_yet(aws, network, lagging):
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "a", "Value": "b"}]}]
    made = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.50.0/24", TagSpecifications=tags)
    subnet = made["Subnet"]["SubnetId"]
    filters = [{"Name": "tag:a", "Values": ["b"]}]
    assert aws.ec2.describe_subnets(Filters=filters)["Subnets"] == []
    refused("InvalidSubnetID.NotFound", aws.ec2.describe_subnets, SubnetIds=[subnet])
    refused("InvalidSubnetID.NotFound", aws.ec2.create_network_interface, SubnetId=subnet)
    refused("InvalidSubnetID.NotFound", aws.ec2.delete_subnet, SubnetId=subnet)
    clock.skip(LAG + 1)
    assert len(aws.ec2.describe_subnets(Filters=filters)["Subnets"]) == 1
    aws.ec2.delete_subnet(SubnetId=subnet)


def test_every_kind_lags(aws, network, lagging):
    ec2 = aws.ec2
    instance = ec2.run_instances(
        ImageId="ami-bed13630000000000",
        InstanceType="t3.large",
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": network.subnet}],
    )["Instances"][0]["InstanceId"]
    ec2.create_vpc(CidrBlock="10.1.0.0/16")
    ec2.create_internet_gateway()
    ec2.create_route_table(VpcId=network.vpc)
    ec2.allocate_address(Domain="vpc")
    ec2.create_security_group(GroupName="late", Description="d", VpcId=network.vpc)
    by_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]

    def counts():
        return (
            len(ec2.describe_instances()["Reservations"]),
            len(ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.1.0.0/16"]}])["Vpcs"]),
            len(ec2.describe_internet_gateways()["InternetGateways"]) - 1,
            len(ec2.describe_route_tables(Filters=by_vpc)["RouteTables"]) - 1,
            len(ec2.describe_addresses()["Addresses"]),
            len(ec2.describe_security_groups(Filters=by_vpc)["SecurityGroups"]) - 2,
        )

    assert counts() == (0, 0, 0, 0, 0, 0)
    refused("InvalidInstanceID.NotFound", ec2.describe_instances, InstanceIds=[instance])
    clock.skip(LAG + 1)
    assert counts() == (1, 1, 1, 1, 1, 1)


def test_what_was_deleted_just_now_is_still_listed(aws, network, lagging):
    group = aws.ec2.create_security_group(GroupName="late", Description="d", VpcId=network.vpc)["GroupId"]
    clock.skip(LAG + 1)
    aws.ec2.delete_security_group(GroupId=group)
    aws.ec2.delete_subnet(SubnetId=network.subnets[1])
    by_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]

    def listed():
        groups = aws.ec2.describe_security_groups(Filters=by_vpc)["SecurityGroups"]
        subnets = aws.ec2.describe_subnets(Filters=by_vpc)["Subnets"]
        return group in [one["GroupId"] for one in groups], network.subnets[1] in [one["SubnetId"] for one in subnets]

    assert listed() == (True, True)
    refused("InvalidGroup.NotFound", aws.ec2.delete_security_group, GroupId=group)
    clock.skip(LAG + 1)
    assert listed() == (False, False)


def test_new_load_balancers_lag(aws, network, lagging):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    name = "lagging-classic"
    aws.elb.create_load_balancer(LoadBalancerName=name, Listeners=[listener], Subnets=[network.subnet])
    aws.elbv2.create_load_balancer(Name="lagging-network", Type="network", Subnets=[network.subnet])
    refused("LoadBalancerNotFound", aws.elb.describe_load_balancers, LoadBalancerNames=[name])
    assert aws.elb.describe_load_balancers()["LoadBalancerDescriptions"] == []
    assert aws.elbv2.describe_load_balancers()["LoadBalancers"] == []
    clock.skip(LAG + 1)
    assert len(aws.elb.describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"]) == 1
    assert len(aws.elbv2.describe_load_balancers()["LoadBalancers"]) == 1


def test_deleting_a_load_balancer_that_is_not_known_yet_succeeds_and_does_nothing(aws, network, lagging):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    name = "deleted-classic"
    aws.elb.create_load_balancer(LoadBalancerName=name, Listeners=[listener], Subnets=[network.subnet])
    made = aws.elbv2.create_load_balancer(Name="deleted-network", Type="network", Subnets=[network.subnet])
    arn = made["LoadBalancers"][0]["LoadBalancerArn"]

    def delete():
        aws.elb.delete_load_balancer(LoadBalancerName=name)
        aws.elbv2.delete_load_balancer(LoadBalancerArn=arn)

    def left():
        classic, others = aws.elb.describe_load_balancers(), aws.elbv2.describe_load_balancers()
        return len(classic["LoadBalancerDescriptions"]), len(others["LoadBalancers"])

    delete()
    clock.skip(LAG + 1)
    assert left() == (1, 1)
    delete()
    clock.skip(LAG + 1)
    assert left() == (0, 0)


def test_a_token_is_known_at_once(aws, network, lagging):
    given = {"VpcId": network.vpc, "ClientToken": "t"}
    made = [aws.ec2.create_route_table(**given)["RouteTable"]["RouteTableId"] for _ in range(2)]
    assert made[0] == made[1]
