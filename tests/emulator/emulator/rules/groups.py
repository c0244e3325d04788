"""Security groups: rules are added all or none, compared as AWS compares them, and answered completely.

The default group lets itself in. Protocols without ports (such as 4, IP in IP) have none. Those that have a word of their own
are answered by it, whether they were given by word or by number.
"""

import ipaddress
import re
from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupRule

from emulator.hooks import Call, Proceed, around, before

_WITH_PORTS = {"tcp", "udp", "icmp", "icmpv6", "6", "17", "1", "58"}
_WORDS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
_NAME = re.compile(r"^[A-Za-z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}$")
_DIRECTIONS = {"Ingress": "ingress_rules", "Egress": "egress_rules"}


def _new_rule(self: SecurityGroupRule, ec2_backend: Any, ip_protocol: str, *args: Any, **kwargs: Any) -> None:
    if str(ip_protocol).lower() in _WITH_PORTS:
        _moto_new_rule(self, ec2_backend, ip_protocol, *args, **kwargs)
        return
    # Positions after the protocol: group, from-port, to-port.
    given = list(args)
    given[1:3] = [-1, -1]
    _moto_new_rule(self, ec2_backend, ip_protocol, *given, **kwargs)
    self.from_port = self.to_port = None


def _place(rule: SecurityGroupRule) -> tuple[Any, ...]:
    """What makes two rules the same: everything but their descriptions."""
    return (
        rule.ip_protocol,
        rule.from_port,
        rule.to_port,
        rule.ip_range.get("CidrIp") if rule.ip_range else None,
        rule.ip_range.get("CidrIpv6") if rule.ip_range else None,
        rule.source_group.get("GroupId") if rule.source_group else None,
        rule.prefix_list_id.get("PrefixListId") if rule.prefix_list_id else None,
    )


_moto_new_rule = SecurityGroupRule.__init__
SecurityGroupRule.__init__ = _new_rule
SecurityGroupRule.__eq__ = lambda self, other: _place(self) == _place(other)


@before("ec2", "CreateSecurityGroup")
def valid_group(call: Call) -> None:
    """Name, description and VPC as AWS wants them."""
    name, description, vpc_id = call.get("GroupName"), call.get("Description"), call.get("VpcId")
    if name.lower().startswith("sg-"):
        raise call.refuse("InvalidParameterValue", f"Value ({name}) for parameter GroupName is invalid. Group names may not be in the format sg-*.")
    if not _NAME.match(name):
        raise call.refuse("InvalidParameterValue", f"Value ({name}) for parameter GroupName is invalid. Invalid characters or length.")
    if description and not _NAME.match(description):
        raise call.refuse("InvalidParameterValue", f"Value ({description}) for parameter GroupDescription is invalid. Invalid characters or length.")
    if vpc_id:
        call.ec2.get_vpc(vpc_id)


def _create_vpc(self: EC2Backend, *args: Any, **kwargs: Any) -> Any:
    vpc = _moto_create_vpc(self, *args, **kwargs)
    default = self.get_default_security_group(vpc.id)
    itself = {"GroupId": default.id, "UserId": self.account_id, "OwnerId": self.account_id}
    default.ingress_rules.append(SecurityGroupRule(self, "-1", default.id, None, None, None, itself, None))
    return vpc


_moto_create_vpc = EC2Backend.create_vpc
EC2Backend.create_vpc = _create_vpc


@around("ec2", *(f"{verb}SecurityGroup{way}" for verb in ("Authorize", "Revoke") for way in _DIRECTIONS))
def all_or_none(call: Call, proceed: Proceed) -> Any:
    """A failed change leaves the rules as they were; a successful one answers with all new rules."""
    _normalize(call)
    group = call.ec2.get_security_group_by_name_or_id(call.get("GroupId") or call.get("GroupName"))
    if group is None:
        raise call.refuse(
            "InvalidGroup.NotFound", f"The security group '{call.get('GroupId') or call.get('GroupName')}' does not exist"
        )
    attribute = _DIRECTIONS["Egress" if call.action.endswith("Egress") else "Ingress"]
    before_it = list(getattr(group, attribute))
    if call.action.startswith("Authorize"):
        _check_repeats(call)
    try:
        answer = proceed()
    except Exception:
        setattr(group, attribute, before_it)
        raise
    if call.action.startswith("Authorize"):
        answer.result["SecurityGroupRules"] = _shown(group, attribute, before_it)
    return answer


def _normalize(call: Call) -> None:
    """AWS sets host bits of a block to zero; a block that is none is an error. Some protocols it knows by a word."""
    for permission in call.get("IpPermissions") or []:
        protocol = str(permission.get("IpProtocol"))
        permission["IpProtocol"] = _WORDS.get(protocol, protocol)
        for ranges, field in (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6")):
            for one in permission.get(ranges) or []:
                try:
                    one[field] = str(ipaddress.ip_network(one[field], strict=False))
                except ValueError:
                    raise call.refuse(
                        "InvalidParameterValue", f"CIDR block {one[field]} is malformed"
                    ) from None


def _check_repeats(call: Call) -> None:
    seen = set()
    for permission in call.get("IpPermissions") or []:
        ports = (permission.get("IpProtocol"), permission.get("FromPort"), permission.get("ToPort"))
        peers = [one.get("CidrIp") for one in permission.get("IpRanges") or []]
        peers += [one.get("CidrIpv6") for one in permission.get("Ipv6Ranges") or []]
        peers += [one.get("GroupId") or one.get("GroupName") for one in permission.get("UserIdGroupPairs") or []]
        for peer in peers:
            if (ports, peer) in seen:
                raise call.refuse(
                    "InvalidParameterValue", "The same permission must not appear multiple times"
                )
            seen.add((ports, peer))


def _shown(group: SecurityGroup, attribute: str, before_it: list[SecurityGroupRule]) -> list[SecurityGroupRule]:
    known = {rule.id for rule in before_it}
    return [rule for rule in getattr(group, attribute) if rule.id not in known]
