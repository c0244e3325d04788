"""Instances and NAT gateways take time, in every read, as their documented life cycles say."""

from conftest import refused, settle, state_of
from emulator import clock
from emulator.settings import configure, settings


def test_an_instance_is_pending_before_it_runs(aws, launch):
    instance = launch()
    assert instance["State"]["Name"] == "pending"
    assert instance["PrivateIpAddress"].startswith("10.0.0.")
    assert state_of(aws, instance["InstanceId"]) == "pending"
    settle()
    assert state_of(aws, instance["InstanceId"]) == "running"


def test_the_waiter_of_the_sdk_sees_it_run(aws, launch):
    configure(delay=0.5)
    instance = launch()["InstanceId"]
    aws.ec2.get_waiter("instance_running").wait(InstanceIds=[instance], WaiterConfig={"Delay": 1, "MaxAttempts": 5})
    assert state_of(aws, instance) == "running"


def test_an_instance_is_shutting_down_before_it_is_terminated(aws, launch):
    instance = launch()["InstanceId"]
    settle()
    change = aws.ec2.terminate_instances(InstanceIds=[instance])["TerminatingInstances"][0]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "shutting-down")
    assert state_of(aws, instance) == "shutting-down"
    settle()
    assert state_of(aws, instance) == "terminated"
    again = aws.ec2.terminate_instances(InstanceIds=[instance])["TerminatingInstances"][0]
    assert again["CurrentState"]["Name"] == "terminated"


def test_a_terminated_instance_has_no_network_and_is_not_found_by_vpc(aws, launch, network):
    instance = launch()["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    shown = aws.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert shown["NetworkInterfaces"] == [] and shown["SecurityGroups"] == []
    assert "PrivateIpAddress" not in shown and "VpcId" not in shown and "SubnetId" not in shown
    by_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]
    assert aws.ec2.describe_instances(Filters=by_vpc)["Reservations"] == []


def test_an_instance_terminated_while_pending_never_runs(aws, launch):
    instance = launch()["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[instance])
    assert state_of(aws, instance) == "shutting-down"
    settle()
    assert state_of(aws, instance) == "terminated"


def test_terminated_instances_vanish(aws, launch):
    configure(vanish_after_delays=5.0)
    instance = launch(TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}])["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    assert state_of(aws, instance) == "terminated"
    clock.skip(5 * settings.delay)
    refused("InvalidInstanceID.NotFound", aws.ec2.describe_instances, InstanceIds=[instance])
    assert aws.ec2.describe_instances()["Reservations"] == []
    assert aws.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [instance]}])["Tags"] == []


def test_protection_from_termination_is_honoured(aws, launch):
    instance = launch(DisableApiTermination=True)["InstanceId"]
    refused("OperationNotPermitted", aws.ec2.terminate_instances, InstanceIds=[instance])


def _nat(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    return aws.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]


def _shown(aws, nat):
    return aws.ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]


def test_a_nat_gateway_is_pending_then_available(aws, network):
    nat = _nat(aws, network)
    assert _shown(aws, nat)["State"] == "pending"
    settle()
    shown = _shown(aws, nat)
    assert shown["State"] == "available"
    address = shown["NatGatewayAddresses"][0]
    assert address["PrivateIp"].startswith("10.0.0.") and address["PublicIp"]


def test_a_nat_gateway_is_deleting_then_deleted_then_gone(aws, network):
    configure(vanish_after_delays=5.0)
    nat = _nat(aws, network)
    settle()
    aws.ec2.delete_nat_gateway(NatGatewayId=nat)
    assert _shown(aws, nat)["State"] == "deleting"
    settle()
    assert _shown(aws, nat)["State"] == "deleted"
    clock.skip(5 * settings.delay)
    refused("NatGatewayNotFound", aws.ec2.describe_nat_gateways, NatGatewayIds=[nat])


def test_a_nat_gateway_fails_without_an_internet_gateway(aws):
    vpc = aws.ec2.create_vpc(CidrBlock="10.2.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.2.0.0/24")["Subnet"]["SubnetId"]
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    settle()
    shown = _shown(aws, nat)
    assert (shown["State"], shown["FailureCode"]) == ("failed", "Gateway.NotAttached")
    aws.ec2.release_address(AllocationId=address)
    aws.ec2.delete_subnet(SubnetId=subnet)


def test_an_address_serves_one_nat_gateway(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    given = {"SubnetId": network.subnet, "AllocationId": address}
    aws.ec2.create_nat_gateway(**given)
    refused("Resource.AlreadyAssociated", aws.ec2.create_nat_gateway, **given)
