"""What exists, by kind: the proof that a deleted cluster left nothing.

Default things (default VPC, its subnets, main route tables, default groups), the seeded images, key pair and
IAM entities, and whatever is terminated or deleted are left out.
"""

from collections.abc import Callable
from typing import Any

from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import AWSManagedPolicy, iam_backends
from moto.s3.models import FakeKey, s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.ssm.models import ssm_backends

from emulator.seed import KEY_PAIR, PROFILES
from emulator.world import backends


def existing() -> dict[str, list[str]]:
    """Ids by kind; an empty account has empty lists.

    Classic load balancers, secrets, parameters, roles, users, instance profiles and buckets are listed by name,
    objects by bucket and key, policies and OIDC providers by ARN.
    """
    found: dict[str, list[str]] = {}
    for _, _, ec2 in backends(ec2_backends):
        for kind, ids in _ec2(ec2).items():
            found.setdefault(kind, []).extend(ids)
    found.setdefault("load-balancer", [])
    found.setdefault("target-group", [])
    for _, _, elb in backends(elb_backends):
        found["load-balancer"] += list(elb.load_balancers)
    for _, _, elbv2 in backends(elbv2_backends):
        found["load-balancer"] += list(elbv2.load_balancers)
        found["target-group"] += list(elbv2.target_groups)
    found["secret"] = [
        secret.name
        for _, _, backend in backends(secretsmanager_backends)
        for secret in backend.secrets.values()
        if not secret.is_deleted()
    ]
    found["parameter"] = [
        name for _, _, backend in backends(ssm_backends) for name in backend._parameters if not name.startswith("/aws/")
    ]
    found.update(_gathered(efs_backends, _efs))
    found.update(_gathered(iam_backends, _iam))
    found.update(_gathered(s3_backends, _s3))
    return found


def _gathered(table: Any, kinds: Callable[[Any], dict[str, list[str]]]) -> dict[str, list[str]]:
    """The ids of a service in all accounts and regions."""
    found: dict[str, list[str]] = {kind: [] for kind in kinds(None)}
    for _, _, backend in backends(table):
        for kind, ids in kinds(backend).items():
            found[kind] += ids
    return found


def _efs(efs: Any) -> dict[str, list[str]]:
    return {
        "file-system": list(efs.file_systems_by_id) if efs else [],
        "mount-target": list(efs.mount_targets_by_id) if efs else [],
        "access-point": list(efs.access_points) if efs else [],
    }


def _iam(iam: Any) -> dict[str, list[str]]:
    policies = iam.managed_policies.values() if iam else []
    profiles = iam.instance_profiles.values() if iam else []
    return {
        "role": [one.name for one in iam.roles.values() if one.name not in PROFILES] if iam else [],
        "instance-profile": [one.name for one in profiles if one.name not in PROFILES],
        "policy": [one.arn for one in policies if not isinstance(one, AWSManagedPolicy)],
        "user": list(iam.users) if iam else [],
        "oidc-provider": list(iam.open_id_providers) if iam else [],
    }


def _s3(s3: Any) -> dict[str, list[str]]:
    buckets = list(s3.buckets.values()) if s3 else []
    return {
        "bucket": [one.name for one in buckets],
        "object": [
            f"{one.name}/{name}" for one in buckets for name, key in one.keys.items() if isinstance(key, FakeKey)
        ],
    }


def _ec2(ec2: Any) -> dict[str, list[str]]:
    return {
        "vpc": [one.id for one in ec2.vpcs.values() if not one.is_default],
        "subnet": [
            one.id for zone in ec2.subnets.values() for one in zone.values() if not one.default_for_az
        ],
        "internet-gateway": list(ec2.internet_gateways),
        "egress-only-internet-gateway": list(ec2.egress_only_internet_gateways),
        "nat-gateway": [one.id for one in ec2.nat_gateways.values() if one.state != "deleted"],
        "elastic-ip": [one.allocation_id or one.public_ip for one in ec2.addresses],
        "route-table": [one.id for one in ec2.route_tables.values() if not one.main_association_id],
        "vpc-endpoint": list(ec2.vpc_end_points),
        "security-group": [
            one.id for groups in ec2.groups.values() for one in groups.values() if not one.is_default
        ],
        "network-interface": list(ec2.enis),
        "instance": [
            one.id
            for reservation in ec2.reservations.values()
            for one in reservation.instances
            if one.state != "terminated"
        ],
        "volume": list(ec2.volumes),
        "snapshot": [one.id for one in ec2.snapshots.values() if one.owner_id == ec2.account_id and not one.from_ami],
        "launch-template": list(ec2.launch_templates),
        "key-pair": [name for name in ec2.key_pairs if name != KEY_PAIR],
    }
