"""Volumes that are modified: larger only, one change at a time, and in effect before it is over."""

import pytest
from conftest import refused, settle

from emulator import clock
from emulator.settings import settings


@pytest.fixture
def volume(aws):
    """A volume that is available."""
    made = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=4, VolumeType="gp3")["VolumeId"]
    settle()
    return made


def _modified(aws, volume):
    (one,) = aws.ec2.describe_volumes_modifications(VolumeIds=[volume])["VolumesModifications"]
    return one


def _size(aws, volume):
    return aws.ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]["Size"]


def test_a_larger_size_takes_effect_while_the_volume_is_optimized(aws, volume):
    made = aws.ec2.modify_volume(VolumeId=volume, Size=8)["VolumeModification"]
    assert (made["ModificationState"], made["OriginalSize"], made["TargetSize"]) == ("modifying", 4, 8)
    assert (made["OriginalVolumeType"], made["TargetVolumeType"]) == ("gp3", "gp3")
    assert _size(aws, volume) == 4
    settle()
    shown = _modified(aws, volume)
    assert (shown["ModificationState"], _size(aws, volume)) == ("optimizing", 8)
    assert "EndTime" not in shown
    settle()
    shown = _modified(aws, volume)
    assert (shown["ModificationState"], shown["Progress"], "EndTime" in shown) == ("completed", 100, True)


def test_a_volume_that_was_never_modified_has_no_modification(aws, volume):
    refused("InvalidVolumeModification.NotFound", aws.ec2.describe_volumes_modifications, VolumeIds=[volume])
    refused("InvalidVolume.NotFound", aws.ec2.describe_volumes_modifications, VolumeIds=["vol-0123456789abcdef0"])
    assert aws.ec2.describe_volumes_modifications()["VolumesModifications"] == []


def test_only_the_last_modification_is_told(aws, volume):
    for size in (5, 6):
        aws.ec2.modify_volume(VolumeId=volume, Size=size)
        settle()
        settle()
    assert (_modified(aws, volume)["OriginalSize"], _modified(aws, volume)["TargetSize"]) == (5, 6)


def test_one_modification_waits_for_the_other(aws, volume):
    aws.ec2.modify_volume(VolumeId=volume, Size=5)
    for _ in range(2):
        refused("IncorrectModificationState", aws.ec2.modify_volume, VolumeId=volume, Size=6)
        settle()
    assert aws.ec2.modify_volume(VolumeId=volume, Iops=4000)["VolumeModification"]["TargetIops"] == 4000


def test_what_cannot_be_is_refused(aws, volume):
    refused("InvalidParameterValue", aws.ec2.modify_volume, VolumeId=volume, Size=3)
    refused("MissingParameter", aws.ec2.modify_volume, VolumeId=volume)
    refused("InvalidVolume.NotFound", aws.ec2.modify_volume, VolumeId="vol-0123456789abcdef0", Size=8)
    creating = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=4)["VolumeId"]
    refused("IncorrectState", aws.ec2.modify_volume, VolumeId=creating, Size=8)


def test_a_volume_is_modified_four_times_a_day_at_most(aws, volume):
    for size in (5, 6, 7, 8):
        aws.ec2.modify_volume(VolumeId=volume, Size=size)
        clock.skip(2 * settings.delay + 1)
    refused("VolumeModificationRateExceeded", aws.ec2.modify_volume, VolumeId=volume, Size=9)
    clock.skip(24 * 3600)
    aws.ec2.modify_volume(VolumeId=volume, Size=9)
