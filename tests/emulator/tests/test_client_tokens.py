"""Client tokens, as EC2's "Ensuring idempotency" documents them."""

from concurrent.futures import ThreadPoolExecutor

from conftest import IMAGE, refused, settle, state_of


def test_a_launch_with_the_same_token_gives_the_same_instance(aws, launch):
    first = launch(ClientToken="t")
    again = launch(ClientToken="t")
    assert again["InstanceId"] == first["InstanceId"]
    assert again["State"]["Name"] == "pending"
    settle()
    assert launch(ClientToken="t")["State"]["Name"] == "running"
    shown = aws.ec2.describe_instances()["Reservations"]
    assert sum(len(one["Instances"]) for one in shown) == 1


def test_other_parameters_with_a_known_token_are_refused(aws, launch, network):
    launch(ClientToken="t")
    for change in ({"InstanceType": "t3.xlarge"}, {"UserData": "x"}, {"ImageId": "ami-bed13620000000000"}):
        with_interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "Groups": [network.group]}
        given = {"ImageId": IMAGE, "InstanceType": "t3.large", "MinCount": 1, "MaxCount": 1, "ClientToken": "t"}
        given |= {"NetworkInterfaces": [with_interface]} | change
        refused("IdempotentParameterMismatch", aws.ec2.run_instances, **given)


def test_a_token_answers_with_the_terminated_instance(aws, launch):
    instance = launch(ClientToken="t")["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    again = launch(ClientToken="t")
    assert (again["InstanceId"], again["State"]["Name"]) == (instance, "terminated")
    assert state_of(aws, instance) == "terminated"


def test_many_calls_at_once_with_one_token_make_one_instance(launch):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: launch(ClientToken="t")["InstanceId"], range(16)))
    assert len(set(made)) == 1


def test_a_failed_launch_leaves_its_token_free(aws, launch):
    refused("InvalidAMIID.NotFound", launch, ClientToken="t", ImageId="ami-00000000000000000")
    assert launch(ClientToken="t")["InstanceId"]


def test_different_tokens_make_different_instances(launch):
    assert launch(ClientToken="a")["InstanceId"] != launch(ClientToken="b")["InstanceId"]


def test_nat_gateways_honour_tokens_also_when_deleted(aws, network):
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    given = {"SubnetId": network.subnet, "AllocationId": address, "ClientToken": "t"}
    first = aws.ec2.create_nat_gateway(**given)["NatGateway"]
    again = aws.ec2.create_nat_gateway(**given)["NatGateway"]
    assert again["NatGatewayId"] == first["NatGatewayId"]
    refused(
        "IdempotentParameterMismatch", aws.ec2.create_nat_gateway, **(given | {"SubnetId": network.subnets[1]})
    )
    aws.ec2.delete_nat_gateway(NatGatewayId=first["NatGatewayId"])
    settle()
    gone = aws.ec2.create_nat_gateway(**given)["NatGateway"]
    assert (gone["NatGatewayId"], gone["State"]) == (first["NatGatewayId"], "deleted")


def test_route_tables_honour_tokens(aws, network):
    made = [
        aws.ec2.create_route_table(VpcId=network.vpc, ClientToken="t")["RouteTable"]["RouteTableId"] for _ in range(2)
    ]
    assert made[0] == made[1]
    other = aws.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    refused("IdempotentParameterMismatch", aws.ec2.create_route_table, VpcId=other, ClientToken="t")


def test_volumes_honour_tokens(aws):
    given = {"AvailabilityZone": "us-east-1a", "Size": 10, "ClientToken": "t"}
    assert aws.ec2.create_volume(**given)["VolumeId"] == aws.ec2.create_volume(**given)["VolumeId"]
    refused("IdempotentParameterMismatch", aws.ec2.create_volume, **(given | {"Size": 20}))


def test_tokens_belong_to_an_action_and_a_region(aws, network):
    table = aws.ec2.create_route_table(VpcId=network.vpc, ClientToken="t")["RouteTable"]["RouteTableId"]
    volume = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, ClientToken="t")["VolumeId"]
    there = aws.client("ec2", region="eu-west-1")
    other = there.create_volume(AvailabilityZone="eu-west-1a", Size=1, ClientToken="t")["VolumeId"]
    assert len({table, volume, other}) == 3


def test_a_token_has_at_most_64_characters(aws, network):
    refused("InvalidParameterValue", aws.ec2.create_route_table, VpcId=network.vpc, ClientToken="t" * 65)
