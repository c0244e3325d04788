"""What RunInstances refuses before it makes anything."""

import base64

from conftest import refused, settle
from emulator.seed import PROFILES


def test_what_was_seeded_can_be_launched(launch):
    made = launch(KeyName="default", IamInstanceProfile={"Name": PROFILES[1]})
    assert made["KeyName"] == "default"
    assert made["IamInstanceProfile"]["Arn"].endswith(f"instance-profile/{PROFILES[1]}")


def test_unknown_inputs_are_refused_and_leave_nothing(aws, launch):
    refused("InvalidAMIID.NotFound", launch, ImageId="ami-0123456789abcdef0")
    refused("InvalidAMIID.Malformed", launch, ImageId="ami-bad")
    refused("InvalidKeyPair.NotFound", launch, KeyName="nobody")
    refused("InvalidParameterValue", launch, InstanceType="t99.huge")
    error = refused("InvalidParameterValue", launch, IamInstanceProfile={"Name": "nobody"})
    assert error.response["Error"]["Message"].endswith("Invalid IAM Instance Profile name")
    arn = "arn:aws:iam::123456789012:instance-profile/nobody"
    refused("InvalidParameterValue", launch, IamInstanceProfile={"Arn": arn})
    assert aws.ec2.describe_instances()["Reservations"] == []


def test_the_image_must_fit_the_instance_type(launch):
    refused("InvalidParameterValue", launch, InstanceType="t4g.large")
    refused("InvalidParameterValue", launch, ImageId="ami-bed136300000000a1")
    assert launch(InstanceType="t4g.large", ImageId="ami-bed136300000000a1")["Architecture"] == "arm64"


def test_user_data_has_at_most_16_kib(aws, launch):
    made = launch(UserData="x" * 16384)["InstanceId"]
    shown = aws.ec2.describe_instance_attribute(InstanceId=made, Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(shown) == b"x" * 16384
    refused("InvalidParameterValue", launch, UserData="x" * 16385)


def test_the_root_volume_goes_with_its_instance_and_others_stay(aws, launch):
    mappings = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeType": "gp3"}}]
    mappings.append({"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 3}})
    made = launch(BlockDeviceMappings=mappings)["InstanceId"]
    settle()

    def sizes():
        return sorted(one["Size"] for one in aws.ec2.describe_volumes()["Volumes"])

    assert sizes() == [3, 15]
    aws.ec2.terminate_instances(InstanceIds=[made])
    settle()
    assert sizes() == [3]


def test_every_instance_of_a_launch_has_the_profile(launch, control):
    launch(MinCount=2, MaxCount=2, IamInstanceProfile={"Name": PROFILES[0]}, UserData="mine")
    mine = [one for one in control("world")["instances"] if one["userData"] == base64.b64encode(b"mine").decode()]
    assert len(mine) == 2
    assert all(one["iamInstanceProfile"].endswith(PROFILES[0]) for one in mine)


def test_images_are_found_as_capa_looks_them_up(aws):
    filters = {
        "name": ["capa-ami-ubuntu-24.04-?1.36.3-*"],
        "architecture": ["x86_64"],
        "state": ["available"],
        "virtualization-type": ["hvm"],
    }
    found = aws.ec2.describe_images(
        Owners=["819546954734"], Filters=[{"Name": name, "Values": values} for name, values in filters.items()]
    )["Images"]
    assert len(found) == 2
    assert max(found, key=lambda one: one["CreationDate"])["ImageId"] == "ami-bed13630000000000"


def test_a_deprecated_image_is_found_by_those_who_know_of_it(aws, launch):
    deprecated = "ami-bed13310000000000"
    by_id = [{"Name": "image-id", "Values": [deprecated]}]
    assert aws.ec2.describe_images(Filters=by_id)["Images"] == []
    assert len(aws.ec2.describe_images(Filters=by_id, IncludeDeprecated=True)["Images"]) == 1
    found = aws.ec2.describe_images(ImageIds=[deprecated])["Images"]
    assert [one["ImageId"] for one in found] == [deprecated]
    assert launch(ImageId=deprecated)["ImageId"] == deprecated
