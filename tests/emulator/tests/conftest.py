"""One emulator in this process for all tests, and an account of its own for each test."""

import itertools
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator import clock, seed
from emulator.settings import DEFAULT_AMIS, configure, settings

#: Seconds that a transition takes in these tests, on a clock that they move themselves.
DELAY = 600.0
IMAGE = "ami-bed13630000000000"

seed.prepare(DEFAULT_AMIS)
configure(delay=DELAY)

from emulator import faults, serve  # noqa: E402  (moto reads its environment when it is imported)

_accounts = itertools.count(200000000001)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Where the emulator listens."""
    server = serve.start("127.0.0.1", 0, [])
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def control(endpoint: str) -> Callable[..., Any]:
    """Calls the control API: `control("world")`, `control("faults", [...], method="PUT")`."""

    def call(path: str, content: Any = None, method: str | None = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"{endpoint}/_emulator/{path}", data=data, method=method or ("POST" if data else "GET")
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    return call


class Clients:
    """Clients of one account, made when first used: `aws.ec2`, `aws.elb`, ..., and `aws.client(service, ...)`."""

    def __init__(self, client: Callable[..., Any]):
        self.client = client

    def __getattr__(self, service: str) -> Any:
        made = self.client(service)
        setattr(self, service, made)
        return made


@pytest.fixture
def aws(endpoint: str) -> Iterator[Clients]:
    """Clients in an account of their own."""
    root = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "secret"}
    sts = boto3.client("sts", endpoint_url=endpoint, region_name="us-east-1", **root)
    role = f"arn:aws:iam::{next(_accounts)}:role/tester"
    held = sts.assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]

    def client(service: str, retries: int = 1, timeout: float = 20, region: str = "us-east-1") -> Any:
        return boto3.client(
            service,
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=held["AccessKeyId"],
            aws_secret_access_key=held["SecretAccessKey"],
            aws_session_token=held["SessionToken"],
            config=Config(retries={"total_max_attempts": retries}, read_timeout=timeout, parameter_validation=False),
        )

    yield Clients(client)
    faults.set_all([])
    configure(delay=DELAY, page_size=0, quotas={}, vanish_after_delays=60.0)


@pytest.fixture
def network(aws: Clients) -> SimpleNamespace:
    """A VPC with an internet gateway, two subnets and a security group."""
    ec2 = aws.ec2
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"us-east-1{zone}")["Subnet"]["SubnetId"]
        for n, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    return SimpleNamespace(vpc=vpc, gateway=gateway, subnet=subnets[0], subnets=subnets, group=group)


@pytest.fixture
def launch(aws: Clients, network: SimpleNamespace) -> Callable[..., dict[str, Any]]:
    """Starts an instance as CAPA does, with groups inside its interface; fields override."""

    def run(**fields: Any) -> dict[str, Any]:
        interface = {"DeviceIndex": 0, "SubnetId": network.subnet, "Groups": [network.group]}
        given = {
            "ImageId": IMAGE,
            "InstanceType": "t3.large",
            "MinCount": 1,
            "MaxCount": 1,
            "NetworkInterfaces": [interface],
            **fields,
        }
        return aws.ec2.run_instances(**given)["Instances"][0]

    return run


def refused(code: str, call: Callable[..., Any], *given: Any, **fields: Any) -> ClientError:
    """Expects AWS to refuse with this code; gives the error for more checks."""
    with pytest.raises(ClientError) as caught:
        call(*given, **fields)
    assert caught.value.response["Error"]["Code"] == code, caught.value
    return caught.value


def settle() -> None:
    """Moves the clock until every transition that has begun is over."""
    clock.skip(settings.delay + 1)


def state_of(aws: Clients, instance: str) -> str:
    """The state that DescribeInstances shows."""
    answer = aws.ec2.describe_instances(InstanceIds=[instance])
    return answer["Reservations"][0]["Instances"][0]["State"]["Name"]
