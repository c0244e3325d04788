"""Security groups: atomic, complete and canonical, as the EC2 API reference describes its actions."""

from conftest import refused


def _rules(aws, group):
    return aws.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]


def _tcp(port, cidr="10.0.0.0/8", description=None):
    ranges = {"CidrIp": cidr} | ({"Description": description} if description else {})
    return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [ranges]}


def test_a_failed_authorize_adds_nothing(aws, network):
    add = aws.ec2.authorize_security_group_ingress
    add(GroupId=network.group, IpPermissions=[_tcp(1)])
    refused("InvalidPermission.Duplicate", add, GroupId=network.group, IpPermissions=[_tcp(2), _tcp(1)])
    pair = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-00000000000000000"}]}
    refused("InvalidGroup.NotFound", add, GroupId=network.group, IpPermissions=[_tcp(3), pair])
    assert [one["FromPort"] for one in _rules(aws, network.group)] == [1]


def test_a_failed_revoke_takes_nothing(aws, network):
    aws.ec2.authorize_security_group_ingress(GroupId=network.group, IpPermissions=[_tcp(1)])
    take = aws.ec2.revoke_security_group_ingress
    refused("InvalidPermission.NotFound", take, GroupId=network.group, IpPermissions=[_tcp(1), _tcp(2)])
    assert len(_rules(aws, network.group)) == 1


def test_the_answer_has_all_new_rules(aws, network):
    answer = aws.ec2.authorize_security_group_ingress(
        GroupId=network.group, IpPermissions=[_tcp(1), _tcp(2), _tcp(3)]
    )
    assert [one["FromPort"] for one in answer["SecurityGroupRules"]] == [1, 2, 3]
    assert all(one["SecurityGroupRuleId"].startswith("sgr-") for one in answer["SecurityGroupRules"])


def test_the_same_rule_twice_in_one_call_is_refused(aws, network):
    add = aws.ec2.authorize_security_group_ingress
    refused("InvalidParameterValue", add, GroupId=network.group, IpPermissions=[_tcp(1), _tcp(1)])


def test_descriptions_do_not_make_a_rule_another(aws, network):
    add, take = aws.ec2.authorize_security_group_ingress, aws.ec2.revoke_security_group_ingress
    add(GroupId=network.group, IpPermissions=[_tcp(1, description="a")])
    refused("InvalidPermission.Duplicate", add, GroupId=network.group, IpPermissions=[_tcp(1, description="b")])
    take(GroupId=network.group, IpPermissions=[_tcp(1)])
    pair = {"GroupId": network.group}
    described = {"IpProtocol": "-1", "UserIdGroupPairs": [pair | {"Description": "all"}]}
    add(GroupId=network.group, IpPermissions=[described])
    refused(
        "InvalidPermission.Duplicate",
        add,
        GroupId=network.group,
        IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [pair]}],
    )
    take(GroupId=network.group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [pair]}])
    assert _rules(aws, network.group) == []


def test_protocols_without_ports_have_none(aws, network):
    add = aws.ec2.authorize_security_group_ingress
    pair = [{"GroupId": network.group}]
    add(GroupId=network.group, IpPermissions=[{"IpProtocol": "4", "UserIdGroupPairs": pair}])
    add(GroupId=network.group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": pair}])
    shown = {one["IpProtocol"]: one for one in _rules(aws, network.group)}
    assert set(shown) == {"4", "-1"}
    assert all("FromPort" not in one and "ToPort" not in one for one in shown.values())
    refused(
        "InvalidPermission.Duplicate",
        add,
        GroupId=network.group,
        IpPermissions=[{"IpProtocol": "4", "FromPort": -1, "ToPort": -1, "UserIdGroupPairs": pair}],
    )


def test_host_bits_of_a_block_are_dropped(aws, network):
    aws.ec2.authorize_security_group_ingress(GroupId=network.group, IpPermissions=[_tcp(1, "10.0.0.1/8")])
    assert _rules(aws, network.group)[0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}]
    refused(
        "InvalidParameterValue",
        aws.ec2.authorize_security_group_ingress,
        GroupId=network.group,
        IpPermissions=[_tcp(1, "nonsense")],
    )


def test_some_protocols_are_answered_by_a_word(aws, network):
    add = aws.ec2.authorize_security_group_ingress
    anywhere = {"FromPort": -1, "ToPort": -1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    for protocol in ("1", "58", "50"):
        add(GroupId=network.group, IpPermissions=[{"IpProtocol": protocol} | anywhere])
    assert {one["IpProtocol"] for one in _rules(aws, network.group)} == {"icmp", "icmpv6", "50"}
    refused(
        "InvalidPermission.Duplicate",
        add,
        GroupId=network.group,
        IpPermissions=[{"IpProtocol": "icmpv6"} | anywhere],
    )


def test_the_default_group_lets_itself_in(aws, network):
    filters = [{"Name": "vpc-id", "Values": [network.vpc]}, {"Name": "group-name", "Values": ["default"]}]
    group = aws.ec2.describe_security_groups(Filters=filters)["SecurityGroups"][0]
    assert [one["GroupId"] for one in group["IpPermissions"][0]["UserIdGroupPairs"]] == [group["GroupId"]]


def test_names_descriptions_and_vpcs_are_checked(aws, network):
    make = aws.ec2.create_security_group
    refused("InvalidParameterValue", make, GroupName="sg-x", Description="d", VpcId=network.vpc)
    refused("InvalidParameterValue", make, GroupName="x", Description="ü", VpcId=network.vpc)
    refused("InvalidVpcID.NotFound", make, GroupName="x", Description="d", VpcId="vpc-00000000000000000")
    refused("InvalidGroup.Duplicate", make, GroupName="nodes", Description="d", VpcId=network.vpc)
