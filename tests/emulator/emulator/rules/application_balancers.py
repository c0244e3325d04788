"""Listeners, rules and target groups as a controller of Ingresses meets them: what fits together, and what is in use.

Sources: Elastic Load Balancing API reference of 2015-12-01, "CreateListener", "CreateRule", "CreateTargetGroup",
"SetSubnets"; its user guide for application load balancers, "Listener rules".
"""

from typing import Any

from moto.ec2.exceptions import InvalidVPCIdError

from emulator.hooks import Call, before

#: Protocols of the target groups that each kind of load balancer forwards to.
_PROTOCOLS = {"application": {"HTTP", "HTTPS"}, "network": {"TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"}}
_PRIORITIES = range(1, 50001)


@before("elbv2", "SetSubnets")
def two_zones_stay(call: Call) -> None:
    """An application load balancer keeps two zones."""
    balancer = call.elbv2.load_balancers.get(call.get("LoadBalancerArn"))
    ids = call.get("Subnets") or [one["SubnetId"] for one in call.get("SubnetMappings") or []]
    if balancer is not None and balancer.type == "application" and len(ids) < 2:
        message = "At least two subnets in two different Availability Zones must be specified"
        raise call.refuse("ValidationError", message)


@before("elbv2", "CreateLoadBalancer", "SetSecurityGroups")
def groups_of_one_vpc(call: Call) -> None:
    """Security groups belong to the VPC of the load balancer."""
    if call.action == "SetSecurityGroups":
        balancer = call.elbv2.load_balancers.get(call.get("LoadBalancerArn"))
        vpc_id = balancer.vpc_id if balancer else None
    else:
        ids = call.get("Subnets") or [one["SubnetId"] for one in call.get("SubnetMappings") or []]
        vpc_id = call.ec2.get_subnet(ids[0]).vpc_id if ids else None
    for name in call.get("SecurityGroups") or []:
        group = call.ec2.get_security_group_from_id(name)
        if group is not None and vpc_id and group.vpc_id != vpc_id:
            raise call.refuse("InvalidSecurityGroup", f"One or more security groups are invalid: {name}")


@before("elbv2", "CreateTargetGroup")
def group_has_a_place(call: Call) -> None:
    """A target group has a VPC that exists."""
    vpc_id = call.get("VpcId")
    try:
        if vpc_id is not None:
            call.ec2.get_vpc(vpc_id)
    except InvalidVPCIdError:
        raise call.refuse("ValidationError", f"The VPC ID '{vpc_id}' is not found") from None


@before("elbv2", "CreateListener")
def secure_listeners_have_certificates(call: Call) -> None:
    """HTTPS and TLS need a certificate."""
    if call.get("Protocol") in ("HTTPS", "TLS") and not call.get("Certificates"):
        message = f"A certificate must be specified for {call.get('Protocol')} listeners"
        raise call.refuse("ValidationError", message)


@before("elbv2", "CreateListener", "ModifyListener", "CreateRule", "ModifyRule")
def fitting_target_groups(call: Call) -> None:
    """A listener forwards to target groups that exist, speak its protocol, lie in its VPC and serve nobody else."""
    balancer = _balancer(call)
    if balancer is None:
        return
    for action in [*(call.get("DefaultActions") or []), *(call.get("Actions") or [])]:
        for arn in call.elbv2._get_target_group_arns_from(action_data=action):
            group = call.elbv2.target_groups.get(arn)
            if group is None:
                raise call.refuse("TargetGroupNotFound", f"Target groups '{arn}' not found")
            _check_fit(call, balancer, group)


def _check_fit(call: Call, balancer: Any, group: Any) -> None:
    if group.protocol and balancer.type in _PROTOCOLS and group.protocol not in _PROTOCOLS[balancer.type]:
        message = f"Target group '{group.arn}' with protocol {group.protocol} does not fit a load balancer of type "
        raise call.refuse("IncompatibleProtocols", message + balancer.type)
    if group.vpc_id and balancer.vpc_id and group.vpc_id != balancer.vpc_id:
        message = f"Target group '{group.arn}' is not in the VPC of the load balancer '{balancer.arn}'"
        raise call.refuse("InvalidConfigurationRequest", message)
    if any(one != balancer.arn for one in group.load_balancer_arns):
        message = f"The following target groups cannot be associated with more than one load balancer: {group.arn}"
        raise call.refuse("TargetGroupAssociationLimit", message)


def _balancer(call: Call) -> Any:
    """The load balancer that a call on it, its listener or its rule is about."""
    arn = call.get("LoadBalancerArn")
    if arn:
        return call.elbv2.load_balancers.get(arn)
    for balancer in call.elbv2.load_balancers.values():
        for listener in balancer.listeners.values():
            if call.get("ListenerArn") == listener.arn or call.get("RuleArn") in _rules(listener):
                return balancer
    return None


def _rules(listener: Any) -> set[str]:
    return {one.arn for one in listener.rules.values()}


@before("elbv2", "CreateRule")
def possible_priority(call: Call) -> None:
    """Priorities go from 1 to 50000."""
    if int(call.get("Priority") or 0) not in _PRIORITIES:
        raise call.refuse("ValidationError", f"Priority {call.get('Priority')} is not between 1 and 50000")


@before("elbv2", "DeleteRule")
def default_rule_stays(call: Call) -> None:
    """The default rule goes with its listener; an unknown rule is an error."""
    for balancer in call.elbv2.load_balancers.values():
        for listener in balancer.listeners.values():
            for rule in listener.rules.values():
                if rule.arn == call.get("RuleArn"):
                    if getattr(rule, "is_default", False):
                        message = f"Default rule '{rule.arn}' cannot be deleted"
                        raise call.refuse("OperationNotPermitted", message)
                    return
    raise call.refuse("RuleNotFound", "One or more rules not found")
