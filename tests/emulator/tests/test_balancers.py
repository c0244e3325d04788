"""Network and application load balancers, by the API reference of 2015-12-01."""

import pytest
from conftest import refused, settle


@pytest.fixture
def create(aws, network):
    def call(name="api", **fields):
        given = {"Type": "network", "Subnets": [network.subnet], "SecurityGroups": [network.group]}
        return aws.elbv2.create_load_balancer(Name=name, **(given | fields))["LoadBalancers"][0]

    return call


@pytest.fixture
def group(aws, network):
    def call(name="targets", **fields):
        given = {"Protocol": "TCP", "Port": 6443, "VpcId": network.vpc, "HealthCheckProtocol": "TCP"}
        return aws.elbv2.create_target_group(Name=name, **(given | fields))["TargetGroups"][0]["TargetGroupArn"]

    return call


def _forward(group):
    return [{"Type": "forward", "TargetGroupArn": group}]


@pytest.fixture
def serving(aws, create, group):
    """A load balancer with a listener and a target group; their ARNs."""
    balancer, targets = create()["LoadBalancerArn"], group()
    aws.elbv2.create_listener(LoadBalancerArn=balancer, Protocol="TCP", Port=6443, DefaultActions=_forward(targets))
    return balancer, targets


def test_it_is_provisioning_before_it_is_active(aws, create):
    arn = create()["LoadBalancerArn"]

    def state():
        return aws.elbv2.describe_load_balancers(LoadBalancerArns=[arn])["LoadBalancers"][0]["State"]["Code"]

    assert state() == "provisioning"
    settle()
    assert state() == "active"


def test_arns_say_what_kind_it_is(aws, create, network):
    arn = create(Tags=[{"Key": "a", "Value": "b"}])["LoadBalancerArn"]
    assert ":loadbalancer/net/api/" in arn
    assert aws.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"][0]["Tags"] == [{"Key": "a", "Value": "b"}]
    found = aws.resourcegroupstaggingapi.get_resources(TagFilters=[{"Key": "a"}])["ResourceTagMappingList"]
    assert [one["ResourceARN"] for one in found] == [arn]
    assert ":loadbalancer/app/web/" in create("web", Type="application", Subnets=network.subnets)["LoadBalancerArn"]


def test_it_leaves_a_zone_with_its_interface(aws, create, network):
    arn = create(Subnets=network.subnets)["LoadBalancerArn"]

    def interfaces():
        found = aws.ec2.describe_network_interfaces(Filters=[{"Name": "description", "Values": ["ELB net/api/*"]}])
        return sorted(one["SubnetId"] for one in found["NetworkInterfaces"])

    assert interfaces() == sorted(network.subnets)
    aws.elbv2.set_subnets(LoadBalancerArn=arn, Subnets=network.subnets[:1])
    zones = aws.elbv2.describe_load_balancers(LoadBalancerArns=[arn])["LoadBalancers"][0]["AvailabilityZones"]
    assert [one["SubnetId"] for one in zones] == network.subnets[:1]
    assert interfaces() == network.subnets[:1]


def test_creating_it_again_alike_returns_it_and_otherwise_not(aws, create):
    first = create()["LoadBalancerArn"]
    assert create()["LoadBalancerArn"] == first
    refused("DuplicateLoadBalancerName", create, Scheme="internal")
    assert len(aws.elbv2.describe_load_balancers()["LoadBalancers"]) == 1


def test_bad_names_subnets_and_groups_are_refused(aws, create, network):
    refused("ValidationError", create, "a" * 33)
    refused("ValidationError", create, "internal-a")
    refused("SubnetNotFound", create, Subnets=["subnet-00000000000000000"])
    refused("InvalidSecurityGroup", create, SecurityGroups=["sg-00000000000000000"])
    refused("ValidationError", create, Type="application", Subnets=[network.subnet])
    assert aws.elbv2.describe_load_balancers()["LoadBalancers"] == []


def test_an_internet_facing_one_needs_an_internet_gateway(aws, create):
    vpc = aws.ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24")["Subnet"]["SubnetId"]
    refused("InvalidSubnet", create, Subnets=[subnet], SecurityGroups=[])
    create(Subnets=[subnet], SecurityGroups=[], Scheme="internal")


def test_a_port_has_one_listener(aws, serving, group):
    balancer, targets = serving
    given = {"LoadBalancerArn": balancer, "Protocol": "TCP", "Port": 6443}
    aws.elbv2.create_listener(**given, DefaultActions=_forward(targets))
    refused("DuplicateListener", aws.elbv2.create_listener, **given, DefaultActions=_forward(group("other")))
    assert len(aws.elbv2.describe_listeners(LoadBalancerArn=balancer)["Listeners"]) == 1


def test_target_groups_are_created_once_and_name_their_balancers_once(aws, serving, group, create):
    balancer, targets = serving
    assert group() == targets
    refused("DuplicateTargetGroupName", group, Port=1)

    def balancers():
        return aws.elbv2.describe_target_groups(TargetGroupArns=[targets])["TargetGroups"][0].get("LoadBalancerArns")

    aws.elbv2.create_listener(LoadBalancerArn=balancer, Protocol="TCP", Port=1, DefaultActions=_forward(targets))
    assert balancers() == [balancer]
    refused("ResourceInUse", aws.elbv2.delete_target_group, TargetGroupArn=targets)
    aws.elbv2.delete_load_balancer(LoadBalancerArn=balancer)
    assert not balancers()
    aws.elbv2.delete_target_group(TargetGroupArn=targets)


def test_only_running_instances_can_be_targets(aws, serving, launch):
    _, targets = serving
    register = aws.elbv2.register_targets
    refused("InvalidTarget", register, TargetGroupArn=targets, Targets=[{"Id": "i-00000000000000000"}])
    instance = launch()["InstanceId"]
    refused("InvalidTarget", register, TargetGroupArn=targets, Targets=[{"Id": instance}])
    settle()
    register(TargetGroupArn=targets, Targets=[{"Id": instance}])
    aws.ec2.terminate_instances(InstanceIds=[instance])
    assert aws.elbv2.describe_target_health(TargetGroupArn=targets)["TargetHealthDescriptions"] == []
    refused("InvalidTarget", register, TargetGroupArn=targets, Targets=[{"Id": instance}])


def _health(aws, targets):
    found = aws.elbv2.describe_target_health(TargetGroupArn=targets)["TargetHealthDescriptions"]
    return [(one["TargetHealth"]["State"], one["TargetHealth"].get("Reason")) for one in found]


def test_targets_are_initial_before_they_are_healthy(aws, serving, launch):
    _, targets = serving
    instance = launch()["InstanceId"]
    settle()
    aws.elbv2.register_targets(TargetGroupArn=targets, Targets=[{"Id": instance}])
    assert _health(aws, targets) == [("initial", "Elb.RegistrationInProgress")]
    settle()
    assert _health(aws, targets) == [("healthy", None)]


def test_targets_without_a_listener_are_unused(aws, group, launch):
    targets, instance = group(), launch()["InstanceId"]
    settle()
    aws.elbv2.register_targets(TargetGroupArn=targets, Targets=[{"Id": instance}])
    settle()
    assert _health(aws, targets) == [("unused", "Target.NotInUse")]


def test_what_a_bed_reports_is_what_is_described(aws, serving, launch, control):
    balancer, targets = serving
    instance = launch()["InstanceId"]
    settle()
    aws.elbv2.register_targets(TargetGroupArn=targets, Targets=[{"Id": instance}])
    report = {"loadBalancer": balancer, "instanceId": instance, "port": 6443}
    control("target-health", report | {"healthy": False})
    settle()
    assert _health(aws, targets) == [("unhealthy", "Target.FailedHealthChecks")]
    control("target-health", report | {"healthy": True})
    assert _health(aws, targets) == [("healthy", None)]


def test_absent_targets_can_be_deregistered(aws, serving):
    _, targets = serving
    aws.elbv2.deregister_targets(TargetGroupArn=targets, Targets=[{"Id": "i-00000000000000000"}])


def test_protection_from_deletion_is_honoured(aws, create):
    arn = create()["LoadBalancerArn"]

    def protect(value):
        attributes = [{"Key": "deletion_protection.enabled", "Value": value}]
        aws.elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)

    protect("true")
    refused("OperationNotPermitted", aws.elbv2.delete_load_balancer, LoadBalancerArn=arn)
    protect("false")
    aws.elbv2.delete_load_balancer(LoadBalancerArn=arn)


def test_a_new_network_load_balancer_is_not_balanced_across_zones(aws, create):
    arn = create()["LoadBalancerArn"]

    def cross_zone():
        all_of_it = aws.elbv2.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
        return [one["Value"] for one in all_of_it if one["Key"] == "load_balancing.cross_zone.enabled"]

    assert cross_zone() == ["false"]
    wanted = [{"Key": "load_balancing.cross_zone.enabled", "Value": "true"}]
    aws.elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=wanted)
    assert cross_zone() == ["true"]
    refused("LoadBalancerNotFound", aws.elbv2.describe_load_balancer_attributes, LoadBalancerArn=arn[:-1] + "0x")


@pytest.fixture
def web(create, network):
    """An application load balancer in two zones."""
    return create("web", Type="application", Subnets=network.subnets)["LoadBalancerArn"]


def _rule(aws, listener, targets, priority=1):
    conditions = [{"Field": "path-pattern", "Values": ["/a"]}]
    made = aws.elbv2.create_rule(
        ListenerArn=listener, Priority=priority, Conditions=conditions, Actions=_forward(targets)
    )
    return made["Rules"][0]["RuleArn"]


def _listener(aws, balancer, targets, port=80, protocol="HTTP"):
    made = aws.elbv2.create_listener(
        LoadBalancerArn=balancer, Protocol=protocol, Port=port, DefaultActions=_forward(targets)
    )
    return made["Listeners"][0]["ListenerArn"]


def test_an_application_load_balancer_needs_two_zones(aws, create, network, web):
    third = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.9.0/24", AvailabilityZone="us-east-1a")
    same_zone = [network.subnet, third["Subnet"]["SubnetId"]]
    refused("ValidationError", create, "one", Type="application", Subnets=[])
    refused("ValidationError", create, "one", Type="application", Subnets=[network.subnet])
    refused("InvalidConfigurationRequest", create, "one", Type="application", Subnets=same_zone)
    refused("ValidationError", aws.elbv2.set_subnets, LoadBalancerArn=web, Subnets=[network.subnet])


def test_groups_of_another_vpc_are_refused(aws, create, network, web):
    other = aws.ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    foreign = aws.ec2.create_security_group(GroupName="f", Description="f", VpcId=other)["GroupId"]
    wanted = {"Type": "application", "Subnets": network.subnets, "SecurityGroups": [foreign]}
    refused("InvalidSecurityGroup", create, "two", **wanted)
    refused("InvalidSecurityGroup", aws.elbv2.set_security_groups, LoadBalancerArn=web, SecurityGroups=[foreign])


def test_a_network_load_balancer_that_was_made_without_groups_is_given_none(aws, create, network):
    bare = create("bare", SecurityGroups=[])["LoadBalancerArn"]
    given = {"LoadBalancerArn": bare, "SecurityGroups": [network.group]}
    refused("InvalidConfigurationRequest", aws.elbv2.set_security_groups, **given)
    held = create("held")["LoadBalancerArn"]
    aws.elbv2.set_security_groups(LoadBalancerArn=held, SecurityGroups=[network.group])


def test_a_balancers_groups_are_held_until_its_interfaces_are_gone(aws, network, web):
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.elbv2.delete_load_balancer(LoadBalancerArn=web)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    settle()
    aws.ec2.delete_security_group(GroupId=network.group)


def test_target_groups_of_rules_are_in_use(aws, group, web):
    default, targets = (group(name, Protocol="HTTP", Port=80) for name in ("default", "rule"))
    listener = _listener(aws, web, default)
    rule = _rule(aws, listener, targets)
    refused("ResourceInUse", aws.elbv2.delete_target_group, TargetGroupArn=targets)
    refused("PriorityInUse", _rule, aws, listener, targets)
    refused("ValidationError", _rule, aws, listener, targets, 50001)
    aws.elbv2.delete_rule(RuleArn=rule)
    refused("RuleNotFound", aws.elbv2.delete_rule, RuleArn=rule)
    aws.elbv2.delete_target_group(TargetGroupArn=targets)
    aws.elbv2.delete_listener(ListenerArn=listener)
    aws.elbv2.delete_target_group(TargetGroupArn=default)


def test_the_default_rule_stays(aws, group, web):
    listener = _listener(aws, web, group(Protocol="HTTP", Port=80))
    rule = aws.elbv2.describe_rules(ListenerArn=listener)["Rules"][0]
    assert rule["IsDefault"]
    refused("OperationNotPermitted", aws.elbv2.delete_rule, RuleArn=rule["RuleArn"])


def test_target_groups_must_fit_their_listener(aws, group, web, create, network):
    targets = group(Protocol="HTTP", Port=80)
    refused("ValidationError", _listener, aws, web, targets, 443, "HTTPS")
    refused("IncompatibleProtocols", _listener, aws, web, group("tcp"))
    other = aws.ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    refused("InvalidConfigurationRequest", _listener, aws, web, group("far", Protocol="HTTP", Port=80, VpcId=other))
    listener = _listener(aws, web, targets)
    absent = targets[:-1] + ("0" if targets[-1] != "0" else "1")
    refused("TargetGroupNotFound", _rule, aws, listener, absent)
    second = create("second", Type="application", Subnets=network.subnets)["LoadBalancerArn"]
    refused("TargetGroupAssociationLimit", _listener, aws, second, targets)
    refused("ValidationError", group, "v", VpcId="vpc-00000000000000000")
