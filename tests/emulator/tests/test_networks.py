"""VPCs, subnets, internet gateways, route tables and zones."""

from conftest import refused, settle


def test_blocks_are_canonical_and_in_range(aws):
    made = aws.ec2.create_vpc(CidrBlock="10.3.7.9/16")["Vpc"]
    assert made["CidrBlock"] == "10.3.0.0/16"
    refused("InvalidVpc.Range", aws.ec2.create_vpc, CidrBlock="10.0.0.0/8")
    refused("InvalidVpc.Range", aws.ec2.create_vpc, CidrBlock="10.0.0.0/29")
    refused("InvalidParameterValue", aws.ec2.create_vpc, CidrBlock="10.0.0.0.0/16")
    make = aws.ec2.create_subnet
    refused("InvalidSubnet.Range", make, VpcId=made["VpcId"], CidrBlock="10.4.0.0/24")
    refused("InvalidSubnet.Range", make, VpcId=made["VpcId"], CidrBlock="10.3.0.0/29")
    make(VpcId=made["VpcId"], CidrBlock="10.3.0.0/24")
    refused("InvalidSubnet.Conflict", make, VpcId=made["VpcId"], CidrBlock="10.3.0.128/25")


def test_secondary_blocks_must_not_overlap(aws, network):
    add = aws.ec2.associate_vpc_cidr_block
    refused("InvalidVpc.Range", add, VpcId=network.vpc, CidrBlock="10.0.128.0/17")
    add(VpcId=network.vpc, CidrBlock="10.77.0.0/16")


def test_zones_must_be_of_the_region(aws, network):
    refused(
        "InvalidParameterValue",
        aws.ec2.create_subnet,
        VpcId=network.vpc,
        CidrBlock="10.0.99.0/24",
        AvailabilityZone="eu-west-1a",
    )
    refused("InvalidParameterValue", aws.ec2.describe_availability_zones, ZoneNames=["us-east-1z"])


def test_zones_say_whether_they_need_opting_in(aws):
    filters = [{"Name": "opt-in-status", "Values": ["opt-in-not-required"]}]
    zones = aws.ec2.describe_availability_zones(Filters=filters)["AvailabilityZones"]
    assert len(zones) == 6 and {one["OptInStatus"] for one in zones} == {"opt-in-not-required"}
    filters[0]["Values"] = ["not-opted-in"]
    assert aws.ec2.describe_availability_zones(Filters=filters)["AvailabilityZones"] == []


def test_new_subnets_are_neither_default_nor_public(aws, network):
    there = aws.client("ec2", region="eu-central-1")
    for vpc in there.describe_vpcs()["Vpcs"]:
        for subnet in there.describe_subnets()["Subnets"]:
            there.delete_subnet(SubnetId=subnet["SubnetId"])
        made = there.create_subnet(VpcId=vpc["VpcId"], CidrBlock="172.31.0.0/24", AvailabilityZone="eu-central-1a")
        assert not made["Subnet"]["DefaultForAz"] and not made["Subnet"]["MapPublicIpOnLaunch"]


def test_a_vpc_has_one_internet_gateway(aws, network):
    second = aws.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    refused("InvalidParameterValue", aws.ec2.attach_internet_gateway, InternetGatewayId=second, VpcId=network.vpc)
    refused(
        "Resource.AlreadyAssociated",
        aws.ec2.attach_internet_gateway,
        InternetGatewayId=network.gateway,
        VpcId=network.vpc,
    )


def test_an_address_needs_an_internet_gateway(aws):
    vpc = aws.ec2.create_vpc(CidrBlock="10.6.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.6.0.0/24")["Subnet"]["SubnetId"]
    interface = aws.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    refused(
        "Gateway.NotAttached", aws.ec2.associate_address, NetworkInterfaceId=interface, AllocationId=address
    )


def test_a_subnet_has_one_route_table(aws, network):
    tables = [aws.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"] for _ in range(2)]
    given = {"RouteTableId": tables[0], "SubnetId": network.subnet}
    first = aws.ec2.associate_route_table(**given)["AssociationId"]
    assert aws.ec2.associate_route_table(**given)["AssociationId"] == first
    refused("Resource.AlreadyAssociated", aws.ec2.associate_route_table, **(given | {"RouteTableId": tables[1]}))
    aws.ec2.disassociate_route_table(AssociationId=first)
    aws.ec2.associate_route_table(**(given | {"RouteTableId": tables[1]}))


def test_routes_lead_to_what_exists_in_the_same_vpc(aws, network):
    table = aws.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
    refused("InvalidNatGatewayID.NotFound", aws.ec2.create_route, **route, NatGatewayId="nat-00000000000000000")
    refused(
        "InvalidInternetGatewayID.NotFound", aws.ec2.create_route, **route, GatewayId="igw-00000000000000000"
    )
    loose = aws.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    refused("InvalidParameterValue", aws.ec2.create_route, **route, GatewayId=loose)
    aws.ec2.create_route(**route, GatewayId=network.gateway)
    refused("RouteAlreadyExists", aws.ec2.create_route, **route, GatewayId=network.gateway)


def test_a_route_to_a_deleted_gateway_is_a_black_hole(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    table = aws.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
    aws.ec2.create_route(**route, NatGatewayId=nat)

    def state():
        shown = aws.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
        return next(one["State"] for one in shown if one["DestinationCidrBlock"] == "0.0.0.0/0")

    assert state() == "active"
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    settle()
    assert state() == "blackhole"
    refused("InvalidNatGatewayID.NotFound", aws.ec2.replace_route, **route, NatGatewayId=nat)
