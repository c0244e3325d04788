"""Volumes: they take time, hold on to their instance, and survive it unless told otherwise."""

import pytest
from conftest import IMAGE, refused, settle

ZONE = "us-east-1a"
DEVICE = "/dev/xvdba"


@pytest.fixture
def instance(launch):
    """An instance that runs."""
    made = launch()["InstanceId"]
    settle()
    return made


@pytest.fixture
def volume(aws):
    """A volume that is available."""
    made = aws.ec2.create_volume(AvailabilityZone=ZONE, Size=4, VolumeType="gp3")["VolumeId"]
    settle()
    return made


def _shown(aws, volume):
    return aws.ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]


def _attach(aws, volume, instance, device=DEVICE):
    return aws.ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device=device)


def test_a_volume_takes_time_and_keeps_its_token_and_tags(aws):
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "CSIVolumeName", "Value": "pvc-1"}]}]
    wanted = {"AvailabilityZone": ZONE, "Size": 4, "VolumeType": "gp3", "ClientToken": "a", "TagSpecifications": tags}
    made = aws.ec2.create_volume(**wanted)
    assert made["State"] == "creating" == _shown(aws, made["VolumeId"])["State"]
    assert aws.ec2.create_volume(**wanted)["VolumeId"] == made["VolumeId"]
    refused("IdempotentParameterMismatch", aws.ec2.create_volume, **{**wanted, "Size": 5})
    refused("IncorrectState", aws.ec2.delete_volume, VolumeId=made["VolumeId"])
    settle()
    assert _shown(aws, made["VolumeId"])["State"] == "available" == aws.ec2.create_volume(**wanted)["State"]
    by_tag = aws.ec2.describe_volumes(Filters=[{"Name": "tag:CSIVolumeName", "Values": ["pvc-1"]}])["Volumes"]
    assert [one["VolumeId"] for one in by_tag] == [made["VolumeId"]]
    aws.ec2.delete_volume(VolumeId=made["VolumeId"])
    refused("InvalidVolume.NotFound", aws.ec2.describe_volumes, VolumeIds=[made["VolumeId"]])


def test_an_unknown_zone_or_no_size_is_refused(aws):
    refused("InvalidZone.NotFound", aws.ec2.create_volume, AvailabilityZone="us-east-1x", Size=4)
    refused("InvalidParameterValue", aws.ec2.create_volume, AvailabilityZone=ZONE, Size=0)


def test_tags_in_another_order_are_the_same_tags(aws):
    tags = [{"Key": "CSIVolumeName", "Value": "pvc-1"}, {"Key": "ebs.csi.aws.com/cluster", "Value": "true"}]

    def create(tags):
        specified = [{"ResourceType": "volume", "Tags": tags}]
        return aws.ec2.create_volume(AvailabilityZone=ZONE, Size=4, ClientToken="order", TagSpecifications=specified)["VolumeId"]

    assert create(tags) == create(tags[::-1])
    refused("IdempotentParameterMismatch", create, tags[:1])


def test_a_volume_is_only_so_fast_and_a_dry_run_says_how_fast(aws):
    def create(kind, dry=False):
        return aws.ec2.create_volume(AvailabilityZone=ZONE, Size=4, VolumeType=kind, Iops=2**31 - 1, DryRun=dry)

    for dry in (False, True):
        error = refused("InvalidParameterValue", create, "gp3", dry)
        assert "is too high; maximum is 80000" in str(error)
    assert "parameter iops is not supported" in str(refused("InvalidParameterCombination", create, "st1"))
    refused("DryRunOperation", aws.ec2.create_volume, AvailabilityZone=ZONE, Size=4, DryRun=True)
    refused("DryRunOperation", aws.ec2.describe_availability_zones, DryRun=True)


def test_attaching_and_detaching_take_time(aws, instance, volume):
    assert _attach(aws, volume, instance)["State"] == "attaching"
    shown = _shown(aws, volume)
    assert (shown["State"], shown["Attachments"][0]["State"]) == ("in-use", "attaching")
    settle()
    assert _shown(aws, volume)["Attachments"][0]["State"] == "attached"
    described = aws.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    mapped = next(one for one in described["BlockDeviceMappings"] if one["DeviceName"] == DEVICE)["Ebs"]
    assert (mapped["VolumeId"], mapped["Status"], mapped["DeleteOnTermination"]) == (volume, "attached", False)
    for _ in range(2):
        assert aws.ec2.detach_volume(VolumeId=volume)["State"] == "detaching"
    assert _shown(aws, volume)["Attachments"][0]["State"] == "detaching"
    refused("VolumeInUse", aws.ec2.delete_volume, VolumeId=volume)
    settle()
    assert (_shown(aws, volume)["State"], _shown(aws, volume)["Attachments"]) == ("available", [])
    refused("IncorrectState", aws.ec2.detach_volume, VolumeId=volume)


def test_what_cannot_be_attached_is_refused(aws, instance, volume, launch, network):
    creating = aws.ec2.create_volume(AvailabilityZone=ZONE, Size=4)["VolumeId"]
    refused("IncorrectState", _attach, aws, creating, instance)
    settle()
    elsewhere = aws.ec2.create_volume(AvailabilityZone="us-east-1b", Size=4)["VolumeId"]
    settle()
    refused("InvalidVolume.ZoneMismatch", _attach, aws, elsewhere, instance)
    pending = launch()["InstanceId"]
    refused("IncorrectState", _attach, aws, volume, pending)
    for device in ("/dev/xvdzz", "xvdba", "/dev/nvme1n1"):
        refused("InvalidParameterValue", _attach, aws, volume, instance, device)
    _attach(aws, volume, instance)
    refused("VolumeInUse", _attach, aws, volume, instance, "/dev/xvdbb")
    refused("InvalidParameterValue", _attach, aws, creating, instance)
    refused("InvalidAttachment.NotFound", aws.ec2.detach_volume, VolumeId=volume, InstanceId=pending)


def test_the_root_volume_of_a_running_instance_stays(aws, instance):
    root = aws.ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])["Volumes"][0]
    refused("OperationNotPermitted", aws.ec2.detach_volume, VolumeId=root["VolumeId"])
    refused("VolumeInUse", aws.ec2.delete_volume, VolumeId=root["VolumeId"])


def test_volumes_survive_their_instance_unless_told_otherwise(aws, launch, volume):
    root = aws.ec2.describe_images(ImageIds=[IMAGE])["Images"][0]["RootDeviceName"]
    mappings = [
        {"DeviceName": root, "Ebs": {"VolumeSize": 20}},
        {"DeviceName": "/dev/xvdz", "Ebs": {"VolumeSize": 1, "DeleteOnTermination": True}},
        {"DeviceName": "/dev/xvdy", "Ebs": {"VolumeSize": 2, "DeleteOnTermination": False}},
    ]
    instance = launch(BlockDeviceMappings=mappings)["InstanceId"]
    settle()
    _attach(aws, volume, instance)
    settle()
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    left = aws.ec2.describe_volumes()["Volumes"]
    assert sorted(one["Size"] for one in left) == [2, 4]
    assert {one["State"] for one in left} == {"available"}
    for one in left:
        aws.ec2.delete_volume(VolumeId=one["VolumeId"])


def test_a_volume_that_detaches_while_its_instance_ends_is_free(aws, instance, volume):
    _attach(aws, volume, instance)
    aws.ec2.detach_volume(VolumeId=volume)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    assert _shown(aws, volume)["State"] == "available"
