"""Quotas, ids, tags, secrets, and what is not there at all: always an error of AWS, never a page of HTML."""

import base64

from botocore.exceptions import ClientError
from conftest import refused
from emulator.settings import configure


def test_quotas_are_counted(aws, network, launch):
    configure(quotas={"vpc": 2, "elastic-ip": 1, "nat-gateway": 1, "instance": 2, "security-group": 3, "route-table": 1})
    refused("VpcLimitExceeded", aws.ec2.create_vpc, CidrBlock="10.1.0.0/16")
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    refused("AddressLimitExceeded", aws.ec2.allocate_address, Domain="vpc")
    aws.ec2.create_nat_gateway(SubnetId=network.subnet, AllocationId=address)
    configure(quotas={"nat-gateway": 1, "instance": 2})
    another = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    refused("NatGatewayLimitExceeded", aws.ec2.create_nat_gateway, SubnetId=network.subnet, AllocationId=another)
    aws.ec2.create_nat_gateway(SubnetId=network.subnets[1], AllocationId=another)
    launch()
    refused("VcpuLimitExceeded", launch, MinCount=2, MaxCount=2)
    launch()
    refused("VcpuLimitExceeded", launch)


def test_quotas_can_be_set_from_outside(aws, control):
    control("quotas", {"internet-gateway": 0}, method="PUT")
    refused("InternetGatewayLimitExceeded", aws.ec2.create_internet_gateway)
    assert control("quotas") == {"internet-gateway": 0}


def test_malformed_ids_have_codes_of_their_own(aws):
    refused("InvalidInstanceID.Malformed", aws.ec2.describe_instances, InstanceIds=["i-xyz"])
    refused("InvalidGroupId.Malformed", aws.ec2.describe_security_groups, GroupIds=["sg-xyz"])
    refused("InvalidNetworkInterfaceId.Malformed", aws.ec2.describe_network_interfaces, NetworkInterfaceIds=["eni"])
    refused("InvalidInstanceID.NotFound", aws.ec2.describe_instances, InstanceIds=["i-00000000"])


def test_tags_go_on_what_exists(aws):
    tags = [{"Key": "a", "Value": "b"}]
    zeros = "00000000000000000"
    for name, code in (
        (f"i-{zeros}", "InvalidInstanceID.NotFound"),
        (f"nat-{zeros}", "InvalidNatGatewayID.NotFound"),
        (f"eni-{zeros}", "InvalidNetworkInterfaceID.NotFound"),
        (f"vpc-{zeros}", "InvalidVpcID.NotFound"),
    ):
        refused(code, aws.ec2.create_tags, Resources=[name], Tags=tags)


def test_reserved_tag_keys_are_refused(aws, network):
    refused(
        "InvalidParameterValue", aws.ec2.create_tags, Resources=[network.vpc], Tags=[{"Key": "aws:x", "Value": "y"}]
    )


def test_secrets_have_at_most_64_kib(aws):
    make = aws.secretsmanager.create_secret
    make(Name="text", SecretString="x" * 65536)
    refused("ValidationException", make, Name="long", SecretString="x" * 65537)
    data = bytes(range(256)) * 256
    make(Name="binary", SecretBinary=data)
    assert aws.secretsmanager.get_secret_value(SecretId="binary")["SecretBinary"] == data
    refused("ValidationException", make, Name="long", SecretBinary=data + b"x" * 3)


def test_a_name_waiting_for_deletion_cannot_be_taken(aws):
    aws.secretsmanager.create_secret(Name="s", SecretString="x")
    aws.secretsmanager.delete_secret(SecretId="s")
    refused("InvalidRequestException", aws.secretsmanager.create_secret, Name="s", SecretString="y")


def test_the_tagging_api_finds_addresses(aws):
    tags = [{"ResourceType": "elastic-ip", "Tags": [{"Key": "a", "Value": "b"}]}]
    address = aws.ec2.allocate_address(Domain="vpc", TagSpecifications=tags)["AllocationId"]
    found = aws.resourcegroupstaggingapi.get_resources(TagFilters=[{"Key": "a", "Values": ["b"]}])
    arns = [one["ResourceARN"] for one in found["ResourceTagMappingList"]]
    assert len(arns) == 1 and arns[0].endswith(f"elastic-ip/{address}")


def test_the_tagging_api_finds_load_balancers_of_each_kind_by_type(aws, network):
    tags = [{"Key": "a", "Value": "b"}]
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    aws.elb.create_load_balancer(LoadBalancerName="c", Listeners=[listener], Subnets=[network.subnet], Tags=tags)
    aws.elbv2.create_load_balancer(Name="n", Type="network", Subnets=[network.subnet], Tags=tags)
    found = aws.resourcegroupstaggingapi.get_resources(
        TagFilters=[{"Key": "a"}], ResourceTypeFilters=["elasticloadbalancing:loadbalancer"]
    )["ResourceTagMappingList"]
    assert sorted(one["ResourceARN"].split(":loadbalancer/")[1].split("/")[0] for one in found) == ["c", "net"]


def test_unknown_actions_filters_and_regions_are_errors_of_aws(aws):
    filters = [{"Name": "nonsense", "Values": ["x"]}]
    for call in (
        aws.ec2.describe_vpcs,
        aws.ec2.describe_subnets,
        aws.ec2.describe_instances,
        aws.ec2.describe_internet_gateways,
        aws.ec2.describe_security_groups,
        aws.ec2.describe_addresses,
        aws.ec2.describe_route_tables,
        aws.ec2.describe_availability_zones,
    ):
        refused("InvalidParameterValue", call, Filters=filters)
    refused("InvalidParameterValue", aws.ec2.describe_nat_gateways, Filter=filters)
    refused("InvalidAction", aws.ec2.describe_ipam_pools)
    refused("InvalidAction", aws.iam.simulate_principal_policy, PolicySourceArn="arn", ActionNames=["a"])
    refused("AuthFailure", aws.client("ec2", region="us-north-9").describe_vpcs)
    refused("SignatureDoesNotMatch", aws.client("elb", region="us-north-9").describe_load_balancers)


def test_filters_take_two_hundred_values_in_all(aws, network):
    vpcs = [network.vpc, *(f"vpc-{n:017x}" for n in range(199))]
    by_vpc = [{"Name": "vpc-id", "Values": vpcs}]
    assert len(aws.ec2.describe_subnets(Filters=by_vpc)["Subnets"]) == 2
    by_state = {"Name": "state", "Values": ["available"]}
    refused("FilterLimitExceeded", aws.ec2.describe_subnets, Filters=[*by_vpc, by_state])
    too_many = [{"Name": "vpc-id", "Values": [*vpcs, "vpc-0123456789abcdef0"]}]
    for call in (aws.ec2.describe_network_interfaces, aws.ec2.describe_security_groups, aws.ec2.describe_route_tables):
        refused("FilterLimitExceeded", call, Filters=too_many)
    refused("FilterLimitExceeded", aws.ec2.describe_nat_gateways, Filter=too_many)


def test_a_crash_inside_is_an_internal_error(aws, monkeypatch):
    from moto.ec2.models import EC2Backend

    def crash(self, *args, **kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(EC2Backend, "describe_vpcs", crash)
    error = refused("InternalError", aws.ec2.describe_vpcs)
    assert isinstance(error, ClientError) and error.response["ResponseMetadata"]["HTTPStatusCode"] == 500


def test_filters_that_moto_lacks_work(aws, launch):
    made = launch(ClientToken="token", UserData=base64.b64encode(b"x").decode())["InstanceId"]
    for name, value in (("client-token", "token"), ("instance-state-code", "0"), ("instance-type", "t3.*")):
        found = aws.ec2.describe_instances(Filters=[{"Name": name, "Values": [value]}])["Reservations"]
        assert [one["Instances"][0]["InstanceId"] for one in found] == [made], name
