"""The whole world at a glance, for the bed that boots machines and forwards connections.

Reads moto's state directly: cheap, not counted as calls, never delayed. Only accounts and regions that were
touched are looked at.
"""

import ipaddress
from collections.abc import Iterator
from typing import Any

from moto.ec2.models import ec2_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends

_ABSENT = (None, "")


def backends(table: Any) -> Iterator[tuple[str, str, Any]]:
    """Account, region and state of every place that was touched."""
    for account, regions in list(table.items()):
        for region, backend in list(regions.items()):
            yield account, region, backend


def dump() -> dict[str, Any]:
    """Instances, load balancers, security groups and VPCs, in the form that the bed reads."""
    world: dict[str, Any] = {"instances": [], "loadBalancers": [], "securityGroups": [], "vpcs": []}
    for _, region, ec2 in backends(ec2_backends):
        for reservation in list(ec2.reservations.values()):
            world["instances"] += [_instance(one, region) for one in reservation.instances]
        for groups in list(ec2.groups.values()):
            world["securityGroups"] += [_group(one) for one in groups.values()]
        world["vpcs"] += [_vpc(one) for one in ec2.vpcs.values()]
    for account, region, elb in backends(elb_backends):
        world["loadBalancers"] += [_classic(one) for one in elb.load_balancers.values()]
    for account, region, elbv2 in backends(elbv2_backends):
        world["loadBalancers"] += [_balancer(one, elbv2) for one in elbv2.load_balancers.values()]
    return world


def tags_of(resource: Any) -> dict[str, str]:
    """The tags of an EC2 resource by key."""
    return dict(resource.ec2_backend.tags.get(resource.id, {}))


def _instance(instance: Any, region: str) -> dict[str, Any]:
    alive = instance.state != "terminated"
    profile = instance.iam_instance_profile
    return {
        "id": instance.id,
        "region": region,
        "state": instance.state,
        "privateIp": instance.private_ip if alive else None,
        "publicIp": (instance.public_ip or None) if alive else None,
        "privateDnsName": instance.private_dns_name if alive else None,
        "publicDnsName": (instance.public_dns_name or None) if alive else None,
        "vpcId": instance.vpc_id,
        "subnetId": instance.subnet_id,
        "availabilityZone": instance.availability_zone,
        "instanceType": instance.instance_type,
        "imageId": instance.image_id,
        "keyName": instance.key_name or None,
        "iamInstanceProfile": profile["Arn"] if profile else None,
        "userData": str(instance.user_data) if instance.user_data is not None else None,
        "securityGroups": [group.id for group in instance.security_groups],
        "tags": tags_of(instance),
        "launchTime": instance.launch_time.timestamp(),
        "httpPutResponseHopLimit": instance.metadata_options.http_put_response_hop_limit,
        "networkInterfaces": [_interface(one) for one in instance.network_interfaces] if alive else [],
    }


def _interface(interface: Any) -> dict[str, Any]:
    return {
        "id": interface.id,
        "privateIp": interface.private_ip_address,
        "macAddress": interface.mac_address,
        "deviceIndex": interface.device_index,
        "subnetId": interface.subnet.id,
        "securityGroups": [group.id for group in interface.group_set],
    }


def _group(group: Any) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "vpcId": group.vpc_id,
        "ingress": [_permission(one) for one in group.ip_permissions],
        "egress": [_permission(one) for one in group.ip_permissions_egress],
    }


def _permission(view: Any) -> dict[str, Any]:
    return {
        "protocol": view.ip_protocol,
        "fromPort": -1 if view.from_port is None else view.from_port,
        "toPort": -1 if view.to_port is None else view.to_port,
        "cidrs": [one.get("CidrIp") or one.get("CidrIpv6") for one in view.all_ip_ranges],
        "groups": [one["GroupId"] for one in view.source_groups if one.get("GroupId")],
    }


def _vpc(vpc: Any) -> dict[str, Any]:
    blocks = vpc.get_cidr_block_association_set()
    held = [one["cidr_block"] for one in blocks if one["cidr_block_state"]["state"] == "associated"]
    return {"id": vpc.id, "cidrs": held}


def _classic(balancer: Any) -> dict[str, Any]:
    listeners = [
        {"port": int(one.load_balancer_port), "protocol": one.protocol, "targetPort": int(one.instance_port)}
        for one in balancer.listeners
    ]
    check = balancer.health_check
    protocol, _, rest = check.target.partition(":")
    port, slash, path = rest.partition("/")
    return {
        "kind": "classic",
        "name": balancer.name,
        "arn": None,
        "dnsName": balancer.dns_name,
        "scheme": balancer.scheme,
        "state": "active",
        "vpcId": balancer.vpc_id,
        "subnets": list(balancer.subnets),
        "securityGroups": list(balancer.security_groups),
        "listeners": listeners,
        "targets": [
            {"instanceId": instance, "ip": None, "port": listener["targetPort"]}
            for instance in balancer.instance_ids
            for listener in listeners
        ],
        "healthCheck": {
            "protocol": protocol,
            "port": int(port),
            "path": slash + path or None,
            "intervalSeconds": int(check.interval),
            "healthyThreshold": int(check.healthy_threshold),
            "unhealthyThreshold": int(check.unhealthy_threshold),
        },
        "tags": dict(balancer.tags),
    }


def _balancer(balancer: Any, elbv2: Any) -> dict[str, Any]:
    listeners, targets, checks = [], [], []
    for listener in balancer.listeners.values():
        groups = [elbv2.target_groups[arn] for arn in group_arns(elbv2, listener) if arn in elbv2.target_groups]
        target_port = int(groups[0].port) if groups and groups[0].port else None
        listeners.append({"port": int(listener.port), "protocol": listener.protocol, "targetPort": target_port})
        for group in groups:
            targets += [_target(one) for one in group.targets.values()]
            checks.append(_check(group))
    return {
        "kind": balancer.type,
        "name": balancer.name,
        "arn": balancer.arn,
        "dnsName": balancer.dns_name,
        "scheme": balancer.scheme or "internet-facing",
        "state": balancer.state,
        "vpcId": balancer.vpc_id,
        "subnets": [one.id for one in balancer.subnets],
        "securityGroups": list(balancer.security_groups or []),
        "listeners": listeners,
        "targets": [one for index, one in enumerate(targets) if one not in targets[:index]],
        "healthCheck": checks[0] if checks else None,
        "tags": {one["Key"]: one["Value"] for one in elbv2.tagging_service.list_tags_for_resource(balancer.arn)["Tags"]},
    }


def group_arns(elbv2: Any, listener: Any) -> list[str]:
    """ARNs of the target groups that a listener forwards to, rules included."""
    actions = [action for rule in listener.rules.values() for action in rule.actions]
    return [
        arn
        for action in actions
        if action.type == "forward"
        for arn in elbv2._get_target_group_arns_from(action_data=action.data)
    ]


def _target(target: dict[str, Any]) -> dict[str, Any]:
    name, port = target["Id"], int(target["Port"])
    try:
        ipaddress.ip_address(name)
        return {"instanceId": None, "ip": name, "port": port}
    except ValueError:
        return {"instanceId": name, "ip": None, "port": port}


def _check(group: Any) -> dict[str, Any]:
    port = group.health_check_port
    return {
        "protocol": group.health_check_protocol,
        "port": int(group.port) if port in (*_ABSENT, "traffic-port") else int(port),
        "path": group.health_check_path,
        "intervalSeconds": int(group.health_check_interval_seconds),
        "healthyThreshold": int(group.healthy_threshold_count),
        "unhealthyThreshold": int(group.unhealthy_threshold_count),
    }
