"""Network interfaces: whose they are, what they hold, when they go."""

from conftest import refused, settle


def _in_vpc(aws, network):
    filters = [{"Name": "vpc-id", "Values": [network.vpc]}]
    return aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]


def test_the_interface_of_an_instance_goes_with_it(aws, launch, network):
    instance = launch()
    assert instance["NetworkInterfaces"][0]["Attachment"]["DeleteOnTermination"] is True
    assert len(_in_vpc(aws, network)) == 1
    aws.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert len(_in_vpc(aws, network)) == 1
    settle()
    assert _in_vpc(aws, network) == []


def test_an_interface_that_was_to_be_kept_becomes_available(aws, launch, network):
    interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "DeleteOnTermination": False}
    instance = launch(NetworkInterfaces=[interface])["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    left = _in_vpc(aws, network)
    assert [one["Status"] for one in left] == ["available"]
    aws.ec2.delete_network_interface(NetworkInterfaceId=left[0]["NetworkInterfaceId"])


def test_an_attached_interface_of_ones_own_outlives_the_instance(aws, launch, network):
    instance = launch()["InstanceId"]
    settle()
    made = aws.ec2.create_network_interface(SubnetId=network.subnet)["NetworkInterface"]["NetworkInterfaceId"]
    aws.ec2.attach_network_interface(InstanceId=instance, NetworkInterfaceId=made, DeviceIndex=1)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    assert [one["NetworkInterfaceId"] for one in _in_vpc(aws, network)] == [made]


def test_tags_for_interfaces_are_set_at_launch(aws, launch, network):
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "role", "Value": "node"}]}]
    launch(TagSpecifications=tags)
    assert _in_vpc(aws, network)[0]["TagSet"] == [{"Key": "role", "Value": "node"}]


def test_groups_inside_interfaces_are_the_instances_groups(aws, launch, network):
    instance = launch()
    assert [one["GroupId"] for one in instance["SecurityGroups"]] == [network.group]
    other = aws.ec2.create_security_group(GroupName="other", Description="o", VpcId=network.vpc)["GroupId"]
    interface = instance["NetworkInterfaces"][0]["NetworkInterfaceId"]
    aws.ec2.modify_network_interface_attribute(NetworkInterfaceId=interface, Groups=[other])
    shown = aws.ec2.describe_instances(InstanceIds=[instance["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert [one["GroupId"] for one in shown["SecurityGroups"]] == [other]
    aws.ec2.delete_security_group(GroupId=network.group)
    by_group = [{"Name": "instance.group-id", "Values": [other]}]
    assert len(aws.ec2.describe_instances(Filters=by_group)["Reservations"]) == 1


def test_changing_the_instances_groups_changes_its_interface(aws, launch, network):
    instance = launch()
    other = aws.ec2.create_security_group(GroupName="other", Description="o", VpcId=network.vpc)["GroupId"]
    aws.ec2.modify_instance_attribute(InstanceId=instance["InstanceId"], Groups=[other])
    assert [one["GroupId"] for one in _in_vpc(aws, network)[0]["Groups"]] == [other]


def test_a_nat_gateway_has_an_interface_of_its_kind(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    held = _in_vpc(aws, network)
    assert [(one["InterfaceType"], one["Description"]) for one in held] == [
        ("nat_gateway", f"Interface for NAT Gateway {nat}")
    ]
    assert held[0]["Groups"] == [] and held[0]["SubnetId"] == network.subnet and held[0]["RequesterManaged"]
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    assert len(_in_vpc(aws, network)) == 1
    settle()
    assert _in_vpc(aws, network) == []


def test_load_balancers_have_interfaces_in_each_subnet_with_their_groups(aws, network):
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    aws.elb.create_load_balancer(
        LoadBalancerName="web", Listeners=[listener], Subnets=network.subnets, SecurityGroups=[network.group]
    )
    held = _in_vpc(aws, network)
    assert {one["Description"] for one in held} == {"ELB web"}
    assert {one["SubnetId"] for one in held} == set(network.subnets)
    assert all([group["GroupId"] for group in one["Groups"]] == [network.group] for one in held)
    aws.elb.detach_load_balancer_from_subnets(LoadBalancerName="web", Subnets=network.subnets[1:])
    assert [one["SubnetId"] for one in _in_vpc(aws, network)] == [network.subnet]
    other = aws.ec2.create_security_group(GroupName="other", Description="o", VpcId=network.vpc)["GroupId"]
    aws.elb.apply_security_groups_to_load_balancer(LoadBalancerName="web", SecurityGroups=[other])
    aws.ec2.delete_security_group(GroupId=network.group)


def test_a_network_load_balancers_interfaces_name_it(aws, network):
    made = aws.elbv2.create_load_balancer(Name="api", Type="network", Subnets=network.subnets)["LoadBalancers"][0]
    path = made["LoadBalancerArn"].partition(":loadbalancer/")[2]
    held = _in_vpc(aws, network)
    assert {(one["Description"], one["InterfaceType"]) for one in held} == {(f"ELB {path}", "network_load_balancer")}


def test_managed_interfaces_cannot_be_taken_or_deleted(aws, network):
    aws.elbv2.create_load_balancer(Name="api", Type="network", Subnets=[network.subnet])
    held = _in_vpc(aws, network)[0]
    refused(
        "OperationNotPermitted",
        aws.ec2.detach_network_interface,
        AttachmentId=held["Attachment"]["AttachmentId"],
    )
    refused(
        "InvalidParameterValue", aws.ec2.delete_network_interface, NetworkInterfaceId=held["NetworkInterfaceId"]
    )


def test_a_full_subnet_refuses_instances_and_leaves_nothing(aws, launch, network):
    small = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.200.0/28")["Subnet"]["SubnetId"]
    interface = {"DeviceIndex": 0, "SubnetId": small, "Groups": [network.group]}
    launch(NetworkInterfaces=[interface], MinCount=11, MaxCount=11)
    refused("InsufficientFreeAddressesInSubnet", launch, NetworkInterfaces=[interface])
    assert len(_in_vpc(aws, network)) == 11
    shown = aws.ec2.describe_subnets(SubnetIds=[small])["Subnets"][0]
    assert shown["AvailableIpAddressCount"] == 0


def test_addresses_are_not_used_again_while_fresh_ones_are_left(aws, launch, network):
    first = launch()
    aws.ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    settle()
    assert launch()["PrivateIpAddress"] != first["PrivateIpAddress"]


def test_unknown_and_foreign_groups_are_refused(aws, launch, network):
    other_vpc = aws.ec2.create_vpc(CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"]
    foreign = aws.ec2.create_security_group(GroupName="f", Description="f", VpcId=other_vpc)["GroupId"]
    for group, code in (("sg-00000000000000000", "InvalidGroup.NotFound"), (foreign, "InvalidParameter")):
        interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "Groups": [group]}
        refused(code, launch, NetworkInterfaces=[interface])
        refused(code, aws.ec2.create_network_interface, SubnetId=network.subnet, Groups=[group])
    assert _in_vpc(aws, network) == []


def test_an_elastic_address_of_a_terminated_instance_is_free(aws, launch, network):
    instance = launch()["InstanceId"]
    settle()
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    aws.ec2.associate_address(InstanceId=instance, AllocationId=address)
    refused("InvalidIPAddress.InUse", aws.ec2.release_address, AllocationId=address)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    aws.ec2.release_address(AllocationId=address)
