"""Classic load balancers as AWS has them: health check, attributes and interfaces from the start, health that takes time.

Also the errors that moto lacks: unknown load balancer, subnet or instance, too long a name, a second one of the
same name with other settings.
"""

import re
from typing import Any

from moto.core.responses import ActionResult
from moto.elb.models import ELBBackend, FakeHealthCheck, LoadBalancer

from emulator import clock, health
from emulator.hooks import Call, Proceed, around, before
from emulator.rules import balancer_parts
from emulator.settings import settings

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?$")
_NAMED = (
    "AddTags",
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateLoadBalancerListeners",
    "DeleteLoadBalancerListeners",
    "DeregisterInstancesFromLoadBalancer",
    "DescribeInstanceHealth",
    "DescribeLoadBalancerAttributes",
    "DescribeLoadBalancers",
    "DescribeTags",
    "DetachLoadBalancerFromSubnets",
    "ModifyLoadBalancerAttributes",
    "RegisterInstancesWithLoadBalancer",
    "RemoveTags",
)


@before("elb", *_NAMED)
def known_balancer(call: Call) -> None:
    """Whoever names a load balancer names one that exists."""
    for name in [*filter(None, [call.get("LoadBalancerName")]), *(call.get("LoadBalancerNames") or [])]:
        if name not in call.elb.load_balancers:
            raise call.refuse("LoadBalancerNotFound", f"There is no ACTIVE Load Balancer named '{name}'")


@around("elb", "CreateLoadBalancer")
def created_once(call: Call, proceed: Proceed) -> Any:
    """Creating it again alike succeeds; otherwise the name is taken. What it names must exist."""
    name = call.get("LoadBalancerName")
    if len(name) > 32 or not _NAME.match(name):
        raise call.refuse(
            "ValidationError",
            f"LoadBalancer name '{name}' must have at most 32 characters, which are letters, digits or hyphens",
        )
    if not call.get("Listeners"):
        raise call.refuse("ValidationError", "Listeners cannot be empty")
    wanted = {
        key: call.get(key) for key in ("Listeners", "Subnets", "SecurityGroups", "Scheme", "AvailabilityZones")
    }
    existing = call.elb.load_balancers.get(name)
    if existing is not None:
        if getattr(existing, "wanted", None) != wanted:
            raise call.refuse(
                "DuplicateLoadBalancerName",
                f"Load Balancer with name '{name}' already exists with a different set of parameters",
            )
        return ActionResult({"DNSName": existing.dns_name})
    _check_place(call)
    answer = proceed()
    balancer = call.elb.load_balancers[name]
    balancer.wanted = wanted
    _complete(call, balancer)
    answer.result["DNSName"] = balancer.dns_name
    return answer


def _check_place(call: Call) -> None:
    subnets = balancer_parts.known_subnets(call, call.get("Subnets") or [])
    if call.get("Scheme") != "internal":
        balancer_parts.internet_reachable(call, subnets)
    for group_id in call.get("SecurityGroups") or []:
        if call.ec2.get_security_group_from_id(group_id) is None:
            raise call.refuse("InvalidSecurityGroup", f"One or more security groups are invalid: {group_id}")
    if subnets and not call.get("SecurityGroups"):
        # moto would make a group of its own; AWS takes the VPC's default group.
        default = call.ec2.get_default_security_group(subnets[0].vpc_id)
        call.params["SecurityGroups"] = [default.id]


def _complete(call: Call, balancer: LoadBalancer) -> None:
    subnets = [call.ec2.get_subnet(one) for one in balancer.subnets]
    balancer.availability_zones = [one.availability_zone for one in subnets] or balancer.availability_zones
    balancer.dns_name = balancer_parts.dns_name(balancer.name, balancer.scheme, call.region)
    balancer.canonical_hosted_zone_name_id = balancer_parts.ZONE_ID
    listener = balancer.listeners[0]
    balancer.health_check = FakeHealthCheck(
        timeout="5", healthy_threshold="10", unhealthy_threshold="2", interval="30", target=f"TCP:{listener.instance_port}"
    )
    balancer.attributes["connection_draining"]["timeout"] = 300
    balancer.attributes["additional_attributes"] = [("elb.http.desyncmitigationmode", "defensive")]
    balancer_parts.sync(call.ec2, balancer, f"ELB {balancer.name}", "interface", set(balancer.subnets))


@around("elb", "ModifyLoadBalancerAttributes")
def attributes_stay(call: Call, proceed: Proceed) -> Any:
    """An idle timeout within bounds; what is not named stays. moto adds an attribute with each call."""
    wanted = call.get("LoadBalancerAttributes") or {}
    idle = (wanted.get("ConnectionSettings") or {}).get("IdleTimeout")
    if idle is not None and not 1 <= int(idle) <= 3600:
        raise call.refuse("ValidationError", f"Value '{idle}' at 'idleTimeout' must be between 1 and 3600")
    attributes = call.elb.load_balancers[call.get("LoadBalancerName")].attributes
    before = list(attributes["additional_attributes"])
    answer = proceed()
    if not wanted.get("AdditionalAttributes"):
        attributes["additional_attributes"][:] = before
    return answer


@around("elb", "AttachLoadBalancerToSubnets", "DetachLoadBalancerFromSubnets", "ApplySecurityGroupsToLoadBalancer")
def interfaces_follow(call: Call, proceed: Proceed) -> Any:
    """Interfaces follow the subnets and groups of their load balancer."""
    balancer_parts.known_subnets(call, call.get("Subnets") or [])
    answer = proceed()
    balancer = call.elb.load_balancers[call.get("LoadBalancerName")]
    balancer.availability_zones = [call.ec2.get_subnet(one).availability_zone for one in balancer.subnets]
    balancer_parts.sync(call.ec2, balancer, f"ELB {balancer.name}", "interface", set(balancer.subnets))
    return answer


@around("elb", "DeleteLoadBalancer")
def interfaces_linger(call: Call, proceed: Proceed) -> Any:
    """The interfaces go a while after their load balancer."""
    balancer = call.elb.load_balancers.get(call.get("LoadBalancerName"))
    answer = proceed()
    if balancer is not None:
        health.forget(balancer.name)
        for instance in balancer.instance_ids:
            health.deregister(balancer.name, instance)
        clock.later(settings.delay, lambda: balancer_parts.sync(call.ec2, balancer, "", "interface", set()))
    return answer


def _delete_listeners(self: ELBBackend, name: str, ports: list[int]) -> LoadBalancer:
    """Takes all of the named listeners; moto keeps them when it is given more than one."""
    balancer = self.load_balancers[name]
    balancer.listeners = [one for one in balancer.listeners if int(one.load_balancer_port) not in ports]
    return balancer


ELBBackend.delete_load_balancer_listeners = _delete_listeners


@around("elb", "RegisterInstancesWithLoadBalancer")
def registered_once(call: Call, proceed: Proceed) -> Any:
    """Only instances that exist, in the load balancer's VPC, and each once."""
    balancer = call.elb.load_balancers[call.get("LoadBalancerName")]
    wanted = [one["InstanceId"] for one in call.get("Instances") or []]
    for instance_id in wanted:
        instance = call.ec2.get_instance_by_id(instance_id)
        if instance is None or instance.state in ("shutting-down", "terminated"):
            raise call.refuse("InvalidInstance", f"Could not find EC2 instance {instance_id}.")
        if balancer.vpc_id and instance.vpc_id != balancer.vpc_id:
            raise call.refuse("InvalidInstance", f"EC2 instance {instance_id} is not in the same VPC as ELB.")
    fresh = [one for one in dict.fromkeys(wanted) if one not in balancer.instance_ids]
    call.params["Instances"] = [{"InstanceId": one} for one in fresh]
    answer = proceed()
    for one in fresh:
        health.register(balancer.name, one)
    answer.result["Instances"] = balancer.instances
    return answer


@around("elb", "DeregisterInstancesFromLoadBalancer")
def deregistered(call: Call, proceed: Proceed) -> Any:
    """An instance that is neither registered nor known cannot be taken out."""
    balancer = call.elb.load_balancers[call.get("LoadBalancerName")]
    wanted = [one["InstanceId"] for one in call.get("Instances") or []]
    for one in wanted:
        if one not in balancer.instance_ids and call.ec2.get_instance_by_id(one) is None:
            raise call.refuse("InvalidInstance", f"Could not find EC2 instance {one}.")
    answer = proceed()
    for one in wanted:
        health.deregister(balancer.name, one)
    answer.result["Instances"] = balancer.instances
    return answer


def _instance_health(self: ELBBackend, lb_name: str, instances: list[dict[str, str]]) -> list[dict[str, Any]]:
    balancer = self.load_balancers[lb_name]
    wanted = [one["InstanceId"] for one in instances] or balancer.instance_ids
    return [{"InstanceId": one, **_health(self, balancer, one)} for one in wanted]


def _health(elb: ELBBackend, balancer: LoadBalancer, instance_id: str) -> dict[str, str]:
    if instance_id not in balancer.instance_ids:
        return _out("Instance", "Instance is not currently registered with the LoadBalancer.", "Unknown")
    instance = balancer_parts.ec2_of(elb).get_instance_by_id(instance_id)
    if instance is None or instance.state not in ("pending", "running"):
        state = instance.state if instance else "terminated"
        return _out("Instance", f"Instance is in {state} state.")
    if balancer_parts.is_healthy(balancer.name, balancer.name, instance_id, _check_port(balancer)):
        return _out("N/A", "N/A", "InService")
    if health.age(balancer.name, instance_id) < settings.delay:
        return _out("ELB", "Instance registration is still in progress.")
    return _out("Instance", "Instance has failed at least the UnhealthyThreshold number of health checks consecutively.")


def _check_port(balancer: LoadBalancer) -> int:
    return int(re.split(r"[:/]", balancer.health_check.target)[1])


def _out(reason: str, description: str, state: str = "OutOfService") -> dict[str, str]:
    return {"State": state, "ReasonCode": reason, "Description": description}


ELBBackend.describe_instance_health = _instance_health


@around("elb", "DescribeInstanceHealth")
def reasons_are_given(call: Call, proceed: Proceed) -> Any:
    """moto writes N/A for reason and description."""
    answer = proceed()
    answer.result["InstanceStates"] = call.elb.describe_instance_health(
        call.get("LoadBalancerName"), call.get("Instances") or []
    )
    return answer
