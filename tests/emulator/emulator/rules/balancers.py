"""Network and application load balancers: provisioning, initial targets, interfaces, and one of each name.

ARNs say `net/` for network load balancers. Identical load balancers, target groups and listeners can be created
again; different ones of the same name or port cannot.
"""

import re
from typing import Any

from moto.core.responses import ActionResult
from moto.elbv2.models import AvailabilityZone, ELBv2Backend, FakeHealthStatus, FakeLoadBalancer, FakeTargetGroup

from emulator import clock, health
from emulator.hooks import Call, Proceed, around, before
from emulator.rules import balancer_parts
from emulator.settings import settings
from emulator.world import group_arns

# Describing a load balancer must not finish it: the clock does.
FakeLoadBalancer.activate = lambda self: None


_set_subnets = ELBv2Backend.set_subnets


def _set_subnets_of(backend: ELBv2Backend, arn: str, subnets: list[str], subnet_mappings: list[dict[str, Any]]) -> Any:
    """A network load balancer may be in one zone, and leave others since February 2025; moto wants two of every kind."""
    balancer = backend.load_balancers.get(arn)
    ids = subnets or [one["SubnetId"] for one in subnet_mappings]
    if balancer is None or balancer.type != "network" or len(ids) != 1:
        return _set_subnets(backend, arn, subnets, subnet_mappings)
    balancer.subnets = [backend._get_subnet({}, ids[0])]
    return [AvailabilityZone(one) for one in balancer.subnets]


ELBv2Backend.set_subnets = _set_subnets_of


def _active(balancer: FakeLoadBalancer) -> None:
    balancer.state = "active"


def _path(arn: str) -> str:
    """`net/<name>/<id>` or `app/<name>/<id>`, as interfaces' descriptions have it."""
    return arn.partition(":loadbalancer/")[2]


def _sync(call: Call, balancer: FakeLoadBalancer) -> None:
    kind = "network_load_balancer" if balancer.type == "network" else "interface"
    wanted = {one.id for one in balancer.subnets}
    balancer_parts.sync(call.ec2, balancer, f"ELB {_path(balancer.arn)}", kind, wanted)


@around("elbv2", "CreateLoadBalancer")
def created_once(call: Call, proceed: Proceed) -> Any:
    """Creating it again alike returns it; otherwise the name is taken."""
    name = call.get("Name")
    kind = call.get("Type") or "application"
    _check_name(call, name)
    ids = call.get("Subnets") or [one["SubnetId"] for one in call.get("SubnetMappings") or []]
    subnets = balancer_parts.known_subnets(call, ids)
    wanted = {
        "type": kind,
        "scheme": call.get("Scheme") or "internet-facing",
        "subnets": sorted(ids),
        "groups": sorted(call.get("SecurityGroups") or []),
        "ipAddressType": call.get("IpAddressType") or "ipv4",
    }
    for existing in call.elbv2.load_balancers.values():
        if existing.name == name:
            if existing.wanted != wanted:
                raise call.refuse(
                    "DuplicateLoadBalancerName",
                    f"A load balancer with the same name '{name}' exists, but with different settings",
                )
            return ActionResult({"LoadBalancers": [existing]})
    _check_place(call, kind, subnets)
    call.params["Scheme"] = wanted["scheme"]
    answer = proceed()
    _complete(call, answer.result["LoadBalancers"][0], wanted)
    return answer


def _check_name(call: Call, name: str) -> None:
    if len(name) > 32:
        raise call.refuse("ValidationError", f"The load balancer name '{name}' cannot be longer than '32' characters")
    if not re.match(r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$", name):
        raise call.refuse(
            "ValidationError",
            f"The load balancer name '{name}' can only contain characters that are alphanumeric characters and "
            "hyphens(-), and cannot begin or end with '-'",
        )
    if name.startswith("internal-"):
        raise call.refuse("ValidationError", f"The load balancer name '{name}' cannot begin with 'internal-'")


def _check_place(call: Call, kind: str, subnets: list[Any]) -> None:
    if kind == "application" and len(subnets) < 2:
        raise call.refuse(
            "ValidationError", "At least two subnets in two different Availability Zones must be specified"
        )
    if (call.get("Scheme") or "internet-facing") == "internet-facing":
        balancer_parts.internet_reachable(call, subnets)
    known_groups(call)
    if kind == "application" and subnets and not call.get("SecurityGroups"):
        call.params["SecurityGroups"] = [call.ec2.get_default_security_group(subnets[0].vpc_id).id]


def _complete(call: Call, balancer: FakeLoadBalancer, wanted: dict[str, Any]) -> None:
    if balancer.type == "network":
        moto_arn = balancer.arn
        balancer.arn = moto_arn.replace(":loadbalancer/app/", ":loadbalancer/net/")
        call.elbv2.load_balancers[balancer.arn] = call.elbv2.load_balancers.pop(moto_arn)
        tags = call.elbv2.tagging_service.list_tags_for_resource(moto_arn)["Tags"]
        call.elbv2.tagging_service.delete_all_tags_for_resource(moto_arn)
        call.elbv2.tagging_service.tag_resource(balancer.arn, tags)
        host = f"{balancer.name}-{balancer.arn.rpartition('/')[2]}.elb.{call.region}.amazonaws.com"
        balancer.dns_name = host
    else:
        balancer.dns_name = balancer_parts.dns_name(balancer.name, balancer.scheme, call.region)
    balancer.canonical_hosted_zone_id = balancer_parts.ZONE_ID
    balancer.wanted = wanted
    clock.later(settings.delay, lambda: _active(balancer))
    _sync(call, balancer)


@before("elbv2", "SetSecurityGroups")
def known_groups(call: Call) -> None:
    """Groups must exist."""
    for group_id in call.get("SecurityGroups") or []:
        if call.ec2.get_security_group_from_id(group_id) is None:
            raise call.refuse("InvalidSecurityGroup", f"One or more security groups are invalid: {group_id}")


@before("elbv2", "SetSecurityGroups")
def groups_from_the_start(call: Call) -> None:
    """A network load balancer that was made without groups is given none."""
    balancer = call.elbv2.load_balancers.get(call.get("LoadBalancerArn"))
    if balancer is not None and balancer.type == "network" and not balancer.wanted["groups"]:
        raise call.refuse(
            "InvalidConfigurationRequest",
            f"Security groups cannot be set for '{balancer.arn}', because it was created without any",
        )


@around("elbv2", "SetSecurityGroups", "SetSubnets")
def interfaces_follow(call: Call, proceed: Proceed) -> Any:
    """Interfaces follow the subnets and groups of their load balancer."""
    ids = call.get("Subnets") or [one["SubnetId"] for one in call.get("SubnetMappings") or []]
    balancer_parts.known_subnets(call, ids)
    answer = proceed()
    balancer = call.elbv2.load_balancers[call.get("LoadBalancerArn")]
    balancer.wanted["groups"] = sorted(balancer.security_groups or [])
    balancer.wanted["subnets"] = sorted(one.id for one in balancer.subnets)
    _sync(call, balancer)
    return answer


@around("elbv2", "DeleteLoadBalancer")
def interfaces_linger(call: Call, proceed: Proceed) -> Any:
    """The interfaces go a while after their load balancer; protection is honoured."""
    balancer = call.elbv2.load_balancers.get(call.get("LoadBalancerArn"))
    if balancer is not None and balancer.attrs.get("deletion_protection.enabled") == "true":
        raise call.refuse(
            "OperationNotPermitted",
            f"Load balancer '{balancer.arn}' cannot be deleted because deletion protection is enabled",
        )
    answer = proceed()
    if balancer is not None:
        health.forget(balancer.name)
        clock.later(settings.delay, lambda: balancer_parts.sync(call.ec2, balancer, "", "interface", set()))
    _refresh_groups(call.elbv2)
    return answer


@around("elbv2", "CreateListener")
def one_listener_each_port(call: Call, proceed: Proceed) -> Any:
    """An identical listener is returned; another on the same port is refused."""
    balancer = call.elbv2.load_balancers.get(call.get("LoadBalancerArn"))
    wanted = {key: call.get(key) for key in ("Port", "Protocol", "DefaultActions", "Certificates")}
    for listener in balancer.listeners.values() if balancer else []:
        if int(listener.port) == int(call.get("Port")):
            if getattr(listener, "wanted", None) == wanted:
                return ActionResult({"Listeners": [listener]})
            raise call.refuse(
                "DuplicateListener",
                "A listener already exists on this port for this load balancer "
                f"'{call.get('LoadBalancerArn')}' (port {call.get('Port')})",
            )
    for action in call.get("DefaultActions") or []:
        for arn in call.elbv2._get_target_group_arns_from(action_data=action):
            if arn not in call.elbv2.target_groups:
                raise call.refuse("TargetGroupNotFound", f"Target groups '{arn}' not found")
    answer = proceed()
    answer.result["Listeners"][0].wanted = wanted
    _refresh_groups(call.elbv2)
    return answer


@around("elbv2", "DeleteListener", "ModifyListener", "CreateRule", "DeleteRule", "ModifyRule")
def groups_know_their_balancers(call: Call, proceed: Proceed) -> Any:
    """Target groups list the load balancers that forward to them, each once."""
    answer = proceed()
    _refresh_groups(call.elbv2)
    return answer


def _refresh_groups(elbv2: ELBv2Backend) -> None:
    users: dict[str, list[str]] = {}
    for balancer in elbv2.load_balancers.values():
        for listener in balancer.listeners.values():
            for arn in group_arns(elbv2, listener):
                held = users.setdefault(arn, [])
                if balancer.arn not in held:
                    held.append(balancer.arn)
    for arn, group in elbv2.target_groups.items():
        group.load_balancer_arns = users.get(arn, [])


@around("elbv2", "CreateTargetGroup")
def created_alike(call: Call, proceed: Proceed) -> Any:
    """An identical target group is returned; another of that name is refused."""
    wanted = {key: value for key, value in call.params.items() if key != "Tags"}
    for existing in call.elbv2.target_groups.values():
        if existing.name == call.get("Name") and getattr(existing, "wanted", None) == wanted:
            return ActionResult({"TargetGroups": [existing]})
    answer = proceed()
    answer.result["TargetGroups"][0].wanted = wanted
    return answer


@around("elbv2", "RegisterTargets")
def only_running_targets(call: Call, proceed: Proceed) -> Any:
    """Instances must exist, run, and lie in the group's VPC."""
    group = call.elbv2.target_groups.get(call.get("TargetGroupArn"))
    if group is None:
        raise call.refuse("TargetGroupNotFound", f"Target groups '{call.get('TargetGroupArn')}' not found")
    ids = [one["Id"] for one in call.get("Targets") or []]
    if group.target_type == "instance":
        _check_instances(call, group, ids)
    answer = proceed()
    for target in ids:
        health.register(group.arn, target)
    return answer


def _check_instances(call: Call, group: FakeTargetGroup, ids: list[str]) -> None:
    known = {one: call.ec2.get_instance_by_id(one) for one in ids}
    absent = [one for one, instance in known.items() if instance is None]
    if absent:
        raise call.refuse("InvalidTarget", f"The following targets are not valid instances: '{', '.join(absent)}'")
    idle = [one for one, instance in known.items() if instance.state != "running"]
    if idle:
        raise call.refuse(
            "InvalidTarget",
            f"The following targets are not in a running state and cannot be registered: '{', '.join(idle)}'",
        )
    foreign = [one for one, instance in known.items() if instance.vpc_id != group.vpc_id]
    if foreign:
        raise call.refuse(
            "InvalidTarget",
            f"The following targets are not in the target group VPC '{group.vpc_id}': '{', '.join(foreign)}'",
        )


@around("elbv2", "DeregisterTargets")
def deregistered(call: Call, proceed: Proceed) -> Any:
    """A target that is not registered is no error; moto makes it one."""
    group = call.elbv2.target_groups.get(call.get("TargetGroupArn"))
    if group is not None:
        call.params["Targets"] = [one for one in call.get("Targets") or [] if one["Id"] in group.targets]
    answer = proceed()
    for one in call.get("Targets") or []:
        health.deregister(call.get("TargetGroupArn"), one["Id"])
    return answer


def _health_for(self: FakeTargetGroup, target: dict[str, Any], ec2_backend: Any) -> FakeHealthStatus:
    status = _moto_health_for(self, target, ec2_backend)
    if status.status != "healthy":
        return status
    if not self.load_balancer_arns:
        return _as(status, "unused", "Target.NotInUse", "Target group is not configured to receive traffic from the load balancer")
    name = self.load_balancer_arns[0]
    if balancer_parts.is_healthy(name, self.arn, target["Id"], int(status.port)):
        return status
    if health.age(self.arn, target["Id"]) < settings.delay:
        return _as(status, "initial", "Elb.RegistrationInProgress", "Target registration is in progress")
    if health.reported(name, target["Id"], int(status.port)) is None:
        return _as(status, "initial", "Elb.InitialHealthChecking", "Initial health checks in progress")
    return _as(status, "unhealthy", "Target.FailedHealthChecks", "Health checks failed")


def _as(status: FakeHealthStatus, state: str, reason: str, description: str) -> FakeHealthStatus:
    status.status, status.reason, status.description = state, reason, description
    return status


_moto_health_for = FakeTargetGroup.health_for
FakeTargetGroup.health_for = _health_for
