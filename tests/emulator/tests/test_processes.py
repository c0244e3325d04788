"""The emulator as others run it: a process with flags, used through the AWS command line."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """A running emulator: its address and its call log."""
    log = tmp_path_factory.mktemp("emulator") / "calls.json"
    fault = {"kind": "throttle", "action": "DescribeKeyPairs"}
    flags = ["--port", "0", "--delay", "0.2", "--page-size", "5", "--quota", "vpc=3", "--seed", "3"]
    flags += ["--call-log", str(log), "--fault", json.dumps(fault)]
    running = subprocess.Popen(
        [sys.executable, "-m", "emulator", *flags],
        env=os.environ | {"PYTHONPATH": str(FOLDER)},
        stdout=subprocess.PIPE,
        text=True,
    )
    address = running.stdout.readline().split()[-1]
    yield address, log
    running.terminate()
    assert running.wait(5) == 0


def _aws(address, *arguments):
    secrets = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x"}
    place = {"AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(
        [sys.executable, "-m", "awscli", *arguments],
        env=os.environ | secrets | place | {"AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )


def test_the_aws_command_line_works(process):
    address, log = process
    shown = _aws(address, "ec2", "describe-vpcs", "--query", "Vpcs[].CidrBlock", "--output", "text")
    assert (shown.stdout.strip(), shown.returncode) == ("172.31.0.0/16", 0)
    call = json.loads(log.read_text().splitlines()[-1])
    assert (call["action"], call["caller"]) == ("DescribeVpcs", "AKIAIOSFODNN7EXAMPLE")


def test_errors_reach_the_command_line(process):
    address, _ = process
    shown = _aws(address, "ec2", "describe-key-pairs")
    assert "RequestLimitExceeded" in shown.stderr and shown.returncode != 0


def test_flags_take_effect(process):
    address, _ = process
    for index in (1, 2):
        assert _aws(address, "ec2", "create-vpc", "--cidr-block", f"10.{index}.0.0/16").returncode == 0
    assert "VpcLimitExceeded" in _aws(address, "ec2", "create-vpc", "--cidr-block", "10.3.0.0/16").stderr
    shown = _aws(address, "ec2", "describe-subnets", "--no-paginate", "--query", "[length(Subnets), NextToken!=null]")
    assert json.loads(shown.stdout) == [5, True]


def test_a_connection_serves_many_requests(process):
    import http.client

    host = process[0].removeprefix("http://")
    connection = http.client.HTTPConnection(host)
    connection.connect()
    socket = connection.sock
    for _ in range(3):
        connection.request("POST", "/", "Action=DescribeVpcs&Version=2016-11-15", {"Content-Type": "application/x-www-form-urlencoded"})
        assert connection.getresponse().read()
        assert connection.sock is socket
    connection.close()


def test_what_was_seeded_is_in_every_region(process):
    address, _ = process
    for region in ("us-east-1", "eu-west-1"):
        shown = _aws(address, "ec2", "describe-images", "--region", region, "--owners", "819546954734", "--query", "length(Images)")
        assert int(shown.stdout) >= 8
    shown = _aws(address, "iam", "list-instance-profiles", "--query", "InstanceProfiles[].InstanceProfileName")
    assert json.loads(shown.stdout) == [
        "control-plane.cluster-api-provider-aws.sigs.k8s.io",
        "nodes.cluster-api-provider-aws.sigs.k8s.io",
    ]


def test_a_hundred_instances_are_described_without_quadratic_work(process):
    """Not a measurement: 100 filtered reads that took minutes with quadratic tag lookups end in seconds."""
    import boto3

    ec2 = boto3.client(
        "ec2", endpoint_url=process[0], region_name="us-east-1", aws_access_key_id="AKIAIOSFODNN7EXAMPLE", aws_secret_access_key="x"
    )
    tags = [{"ResourceType": "instance", "Tags": [{"Key": f"key-{n}", "Value": "v"} for n in range(10)]}]
    ec2.run_instances(ImageId="ami-bed13630000000000", InstanceType="t3.large", MinCount=100, MaxCount=100, TagSpecifications=tags)
    filters = [{"Name": "tag-key", "Values": ["key-5*"]}, {"Name": "tag:key-1", "Values": ["none"]}]
    start = time.monotonic()
    for _ in range(100):
        assert ec2.describe_instances(Filters=filters)["Reservations"] == []
    with urllib.request.urlopen(f"{process[0]}/_emulator/world") as answer:
        assert len(json.load(answer)["instances"]) == 100
    assert time.monotonic() - start < 20
