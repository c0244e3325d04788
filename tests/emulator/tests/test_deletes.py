"""Deletes that AWS refuses: DeleteVpc, DeleteSubnet, DeleteSecurityGroup and the rest, as EC2's error codes list."""

from conftest import refused, settle


def _classic(aws, network, **fields):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 6443, "InstanceProtocol": "TCP", "InstancePort": 6443}
    aws.elb.create_load_balancer(
        LoadBalancerName="api", Listeners=[listener], Subnets=[network.subnet], SecurityGroups=[network.group], **fields
    )


def _nat(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    return nat, address


def _empty_vpc(aws):
    return aws.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]


def test_a_vpc_is_held_by_a_security_group(aws):
    vpc = _empty_vpc(aws)
    group = aws.ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
    refused("DependencyViolation", aws.ec2.delete_vpc, VpcId=vpc)
    aws.ec2.delete_security_group(GroupId=group)
    aws.ec2.delete_vpc(VpcId=vpc)
    refused("InvalidVpcID.NotFound", aws.ec2.describe_vpcs, VpcIds=[vpc])


def test_a_vpc_is_held_by_its_internet_gateway(aws):
    vpc = _empty_vpc(aws)
    gateway = aws.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    aws.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    refused("DependencyViolation", aws.ec2.delete_vpc, VpcId=vpc)
    refused("DependencyViolation", aws.ec2.delete_internet_gateway, InternetGatewayId=gateway)
    aws.ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    aws.ec2.delete_internet_gateway(InternetGatewayId=gateway)
    aws.ec2.delete_vpc(VpcId=vpc)


def test_a_vpc_is_held_by_an_endpoint(aws):
    vpc = _empty_vpc(aws)
    endpoint = aws.ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3")["VpcEndpoint"]
    refused("DependencyViolation", aws.ec2.delete_vpc, VpcId=vpc)
    aws.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
    aws.ec2.delete_vpc(VpcId=vpc)


def test_a_vpc_is_held_by_subnets_and_route_tables(aws):
    vpc = _empty_vpc(aws)
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24")["Subnet"]["SubnetId"]
    refused("DependencyViolation", aws.ec2.delete_vpc, VpcId=vpc)
    aws.ec2.delete_subnet(SubnetId=subnet)
    table = aws.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    refused("DependencyViolation", aws.ec2.delete_vpc, VpcId=vpc)
    aws.ec2.delete_route_table(RouteTableId=table)
    aws.ec2.delete_vpc(VpcId=vpc)


def test_the_default_group_goes_with_its_vpc(aws):
    vpc = _empty_vpc(aws)
    groups = aws.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"]
    assert [one["GroupName"] for one in groups] == ["default"]
    refused("CannotDelete", aws.ec2.delete_security_group, GroupId=groups[0]["GroupId"])
    aws.ec2.delete_vpc(VpcId=vpc)
    assert not aws.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"]
    assert not aws.ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["NetworkAcls"]


def test_the_main_route_table_stays(aws):
    vpc = _empty_vpc(aws)
    table = aws.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"][0]
    refused("DependencyViolation", aws.ec2.delete_route_table, RouteTableId=table["RouteTableId"])
    association = table["Associations"][0]["RouteTableAssociationId"]
    refused("InvalidParameterValue", aws.ec2.disassociate_route_table, AssociationId=association)


def test_an_associated_route_table_stays(aws, network):
    table = aws.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    aws.ec2.associate_route_table(RouteTableId=table, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_route_table, RouteTableId=table)


def test_a_group_is_held_by_a_rule_of_another(aws, network):
    other = aws.ec2.create_security_group(GroupName="other", Description="o", VpcId=network.vpc)["GroupId"]
    pair = [{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "UserIdGroupPairs": [{"GroupId": network.group}]}]
    aws.ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=pair)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.ec2.revoke_security_group_ingress(GroupId=other, IpPermissions=pair)
    aws.ec2.delete_security_group(GroupId=network.group)


def test_a_group_that_names_itself_can_go(aws, network):
    pair = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": network.group}]}]
    aws.ec2.authorize_security_group_ingress(GroupId=network.group, IpPermissions=pair)
    aws.ec2.delete_security_group(GroupId=network.group)


def test_instances_hold_subnet_and_group_until_terminated(aws, network, launch):
    instance = launch()["InstanceId"]
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    settle()
    aws.ec2.terminate_instances(InstanceIds=[instance])
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    settle()
    aws.ec2.delete_security_group(GroupId=network.group)
    aws.ec2.delete_subnet(SubnetId=network.subnet)


def test_groups_given_beside_the_interfaces_hold_too(aws, network, launch):
    launch(NetworkInterfaces=[], SubnetId=network.subnet, SecurityGroupIds=[network.group])
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)


def test_an_interface_of_its_own_holds_subnet_and_group(aws, network):
    made = aws.ec2.create_network_interface(SubnetId=network.subnet, Groups=[network.group])["NetworkInterface"]
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.ec2.delete_network_interface(NetworkInterfaceId=made["NetworkInterfaceId"])
    aws.ec2.delete_security_group(GroupId=network.group)
    aws.ec2.delete_subnet(SubnetId=network.subnet)


def test_an_interface_in_use_cannot_be_deleted(aws, launch):
    interface = launch()["NetworkInterfaces"][0]["NetworkInterfaceId"]
    refused("InvalidParameterValue", aws.ec2.delete_network_interface, NetworkInterfaceId=interface)


def test_a_nat_gateway_holds_subnet_address_and_internet_gateway_until_deleted(aws, network):
    nat, address = _nat(aws, network)
    settle()

    def all_held():
        refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
        refused("InvalidIPAddress.InUse", aws.ec2.release_address, AllocationId=address)
        refused(
            "DependencyViolation",
            aws.ec2.detach_internet_gateway,
            InternetGatewayId=network.gateway,
            VpcId=network.vpc,
        )

    all_held()
    association = aws.ec2.describe_addresses()["Addresses"][0]["AssociationId"]
    refused("AuthFailure", aws.ec2.disassociate_address, AssociationId=association)
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    all_held()
    settle()
    assert "AssociationId" not in aws.ec2.describe_addresses()["Addresses"][0]
    aws.ec2.release_address(AllocationId=address)
    aws.ec2.detach_internet_gateway(InternetGatewayId=network.gateway, VpcId=network.vpc)
    aws.ec2.delete_subnet(SubnetId=network.subnet)


def test_a_classic_load_balancer_holds_subnet_and_group_until_shortly_after_it_is_gone(aws, network):
    _classic(aws, network)
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.elb.delete_load_balancer(LoadBalancerName="api")
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    settle()
    aws.ec2.delete_security_group(GroupId=network.group)
    aws.ec2.delete_subnet(SubnetId=network.subnet)


def test_a_network_load_balancer_holds_subnet_and_group_until_shortly_after_it_is_gone(aws, network):
    made = aws.elbv2.create_load_balancer(
        Name="api", Type="network", Subnets=[network.subnet], SecurityGroups=[network.group]
    )["LoadBalancers"][0]
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.elbv2.delete_load_balancer(LoadBalancerArn=made["LoadBalancerArn"])
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    settle()
    aws.ec2.delete_security_group(GroupId=network.group)
    aws.ec2.delete_subnet(SubnetId=network.subnet)


def test_public_instances_hold_the_internet_gateway(aws, network, launch):
    interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "AssociatePublicIpAddress": True}
    instance = launch(NetworkInterfaces=[interface])["InstanceId"]
    detach = {"InternetGatewayId": network.gateway, "VpcId": network.vpc}
    refused("DependencyViolation", aws.ec2.detach_internet_gateway, **detach)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    aws.ec2.detach_internet_gateway(**detach)


def test_a_whole_network_can_be_taken_down_in_order(aws, network, control):
    nat, address = _nat(aws, network)
    _classic(aws, network)
    aws.elb.delete_load_balancer(LoadBalancerName="api")
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    settle()
    aws.ec2.release_address(AllocationId=address)
    aws.ec2.detach_internet_gateway(InternetGatewayId=network.gateway, VpcId=network.vpc)
    aws.ec2.delete_internet_gateway(InternetGatewayId=network.gateway)
    aws.ec2.delete_security_group(GroupId=network.group)
    for subnet in network.subnets:
        aws.ec2.delete_subnet(SubnetId=subnet)
    aws.ec2.delete_vpc(VpcId=network.vpc)
    left = {one for ids in control("account").values() for one in ids}
    assert not left & {nat, address, network.gateway, network.group, network.vpc, *network.subnets}
    assert not aws.elb.describe_load_balancers()["LoadBalancerDescriptions"]
