"""Faults on purpose, and the answers that AWS gives in each protocol."""

import pytest
from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
from conftest import refused


@pytest.fixture
def fault(control):
    def put(*faults):
        return control("faults", list(faults), method="PUT")

    yield put
    control("faults", [], method="PUT")


def _status(error):
    return error.response["ResponseMetadata"]["HTTPStatusCode"]


def test_throttles_look_as_they_do_in_each_service(aws, fault):
    fault({"kind": "throttle"})
    assert _status(refused("RequestLimitExceeded", aws.ec2.describe_vpcs)) == 503
    assert _status(refused("Throttling", aws.elb.describe_load_balancers)) == 400
    assert _status(refused("Throttling", aws.elbv2.describe_load_balancers)) == 400
    assert _status(refused("ThrottlingException", aws.secretsmanager.list_secrets)) == 400


def test_errors_are_the_services_own(aws, fault):
    fault({"kind": "error"})
    assert _status(refused("InternalError", aws.ec2.describe_vpcs)) == 500
    assert _status(refused("InternalFailure", aws.elb.describe_load_balancers)) == 500


def test_denials_are_the_services_own(aws, fault):
    fault({"kind": "access-denied"})
    assert _status(refused("UnauthorizedOperation", aws.ec2.describe_vpcs)) == 403
    assert _status(refused("AccessDenied", aws.elb.describe_load_balancers)) == 403
    refused("AccessDeniedException", aws.secretsmanager.list_secrets)


def test_quotas_have_the_code_of_their_action(aws, fault):
    fault({"kind": "quota"})
    refused("VpcLimitExceeded", aws.ec2.create_vpc, CidrBlock="10.0.0.0/16")
    refused("AddressLimitExceeded", aws.ec2.allocate_address, Domain="vpc")
    fault({"kind": "quota", "action": "RunInstances", "code": "InsufficientInstanceCapacity"})
    refused("InsufficientInstanceCapacity", aws.ec2.run_instances, ImageId="ami-0", MinCount=1, MaxCount=1)


def test_a_fault_strikes_its_service_action_and_caller_only(aws, fault):
    fault({"kind": "error", "service": "ec2", "action": "Describe*", "caller": "tester/session"})
    refused("InternalError", aws.ec2.describe_vpcs)
    aws.elb.describe_load_balancers()
    aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    fault({"kind": "error", "caller": "AKIA*"})
    aws.ec2.describe_vpcs()


def test_the_sdk_gets_through_by_retrying(aws, fault):
    fault({"kind": "throttle", "times": 2})
    assert aws.client("ec2", retries=4).describe_vpcs()["Vpcs"]


def test_a_lost_reply_is_carried_out(aws, fault, control):
    fault({"kind": "lost-reply", "action": "CreateVpc"})
    start = control("calls")["next"]
    with pytest.raises((ConnectionClosedError, HTTPClientError)):
        aws.ec2.create_vpc(CidrBlock="10.99.0.0/16")
    made = aws.ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.99.0.0/16"]}])["Vpcs"]
    assert len(made) == 1
    logged = [one for one in control(f"calls?since={start}")["calls"] if one["action"] == "CreateVpc"]
    assert [(one["status"], one["fault"]) for one in logged] == [(200, "lost-reply")]


def test_a_lost_launch_and_a_retry_with_its_token_make_one_instance(aws, fault, launch, network):
    fault({"kind": "lost-reply", "action": "RunInstances", "times": 1})
    interface = {"DeviceIndex": 0, "SubnetId": network.subnet}
    made = aws.client("ec2", retries=3).run_instances(
        ImageId="ami-bed13630000000000", InstanceType="t3.large", MinCount=1, MaxCount=1, NetworkInterfaces=[interface]
    )
    shown = aws.ec2.describe_instances()["Reservations"]
    ids = [one["InstanceId"] for page in shown for one in page["Instances"]]
    assert ids == [made["Instances"][0]["InstanceId"]]


def test_a_hanging_call_is_not_carried_out(aws, fault):
    fault({"kind": "hang", "action": "CreateVpc", "seconds": 20})
    with pytest.raises(ReadTimeoutError):
        aws.client("ec2", timeout=0.5).create_vpc(CidrBlock="10.99.0.0/16")
    assert not aws.ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.99.0.0/16"]}])["Vpcs"]
