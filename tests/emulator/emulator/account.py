"""What exists, by kind: the proof that a deleted cluster left nothing.

Default things (default VPC, its subnets, main route tables, default groups), the seeded images, key pair and
IAM entities, and whatever is terminated or deleted are left out.
"""

from typing import Any

from moto.ec2.models import ec2_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.ssm.models import ssm_backends

from emulator.world import backends


def existing() -> dict[str, list[str]]:
    """Ids (names for classic load balancers and secrets) by kind; an empty account has empty lists."""
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
    return found


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
        "launch-template": list(ec2.launch_templates),
        "key-pair": [name for name in ec2.key_pairs if name != "default"],
    }
