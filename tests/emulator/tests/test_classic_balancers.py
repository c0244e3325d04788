"""Classic load balancers, by the API reference of 2012-06-01."""

import pytest
from conftest import refused, settle

LISTENER = {"Protocol": "TCP", "LoadBalancerPort": 6443, "InstanceProtocol": "TCP", "InstancePort": 6443}


@pytest.fixture
def create(aws, network):
    def call(name="api", **fields):
        given = {"Listeners": [LISTENER], "Subnets": [network.subnet], "SecurityGroups": [network.group]}
        return aws.elb.create_load_balancer(LoadBalancerName=name, **(given | fields))

    return call


def _shown(aws, name="api"):
    return aws.elb.describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"][0]


def test_every_new_one_has_a_health_check(aws, create):
    create()
    assert _shown(aws)["HealthCheck"] == {
        "Target": "TCP:6443",
        "Interval": 30,
        "Timeout": 5,
        "UnhealthyThreshold": 2,
        "HealthyThreshold": 10,
    }


def test_attributes_are_there_from_the_start_and_stay_unless_named(aws, create):
    create()

    def shown():
        return aws.elb.describe_load_balancer_attributes(LoadBalancerName="api")["LoadBalancerAttributes"]

    def modify(**attributes):
        return aws.elb.modify_load_balancer_attributes(LoadBalancerName="api", LoadBalancerAttributes=attributes)

    first = {
        "CrossZoneLoadBalancing": {"Enabled": False},
        "AccessLog": {"Enabled": False},
        "ConnectionDraining": {"Enabled": False, "Timeout": 300},
        "ConnectionSettings": {"IdleTimeout": 60},
        "AdditionalAttributes": [{"Key": "elb.http.desyncmitigationmode", "Value": "defensive"}],
    }
    assert shown() == first
    modify(CrossZoneLoadBalancing={"Enabled": True})
    modify(ConnectionSettings={"IdleTimeout": 600})
    changed = {"CrossZoneLoadBalancing": {"Enabled": True}, "ConnectionSettings": {"IdleTimeout": 600}}
    assert shown() == first | changed
    refused("ValidationError", modify, ConnectionSettings={"IdleTimeout": 3601})
    assert shown() == first | changed


def test_zones_and_dns_name_follow_from_subnets_and_scheme(aws, create):
    create()
    create("inner", Scheme="internal")
    assert _shown(aws)["AvailabilityZones"] == ["us-east-1a"]
    assert _shown(aws)["DNSName"].startswith("api-")
    assert _shown(aws, "inner")["DNSName"].startswith("internal-inner-")


def test_creating_it_again_alike_succeeds_and_otherwise_not(aws, create, network):
    first = create()["DNSName"]
    assert create()["DNSName"] == first
    refused("DuplicateLoadBalancerName", create, Scheme="internal")
    refused("DuplicateLoadBalancerName", create, Listeners=[LISTENER | {"InstancePort": 1}])


def test_bad_names_subnets_and_groups_are_refused(aws, create, network):
    refused("ValidationError", create, "a" * 33)
    refused("ValidationError", create, "-a")
    refused("SubnetNotFound", create, Subnets=["subnet-00000000000000000"])
    refused("InvalidSecurityGroup", create, SecurityGroups=["sg-00000000000000000"])
    assert aws.elb.describe_load_balancers()["LoadBalancerDescriptions"] == []


def test_an_internet_facing_one_needs_an_internet_gateway(aws, create):
    vpc = aws.ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24")["Subnet"]["SubnetId"]
    refused("InvalidSubnet", create, Subnets=[subnet], SecurityGroups=[])
    create(Subnets=[subnet], SecurityGroups=[], Scheme="internal")


def test_without_groups_it_has_the_default_group(aws, create, network):
    create(SecurityGroups=[])
    groups = aws.ec2.describe_security_groups(GroupIds=_shown(aws)["SecurityGroups"])["SecurityGroups"]
    assert [one["GroupName"] for one in groups] == ["default"]


def test_unknown_ones_are_not_found_but_can_be_deleted(aws):
    check = {"Target": "TCP:1", "Interval": 5, "Timeout": 4, "UnhealthyThreshold": 2, "HealthyThreshold": 2}
    calls = (
        (aws.elb.describe_load_balancer_attributes, {}),
        (aws.elb.register_instances_with_load_balancer, {"Instances": []}),
        (aws.elb.describe_instance_health, {}),
        (aws.elb.configure_health_check, {"HealthCheck": check}),
    )
    for call, fields in calls:
        refused("LoadBalancerNotFound", call, LoadBalancerName="none", **fields)
    refused("LoadBalancerNotFound", aws.elb.describe_load_balancers, LoadBalancerNames=["none"])
    refused("LoadBalancerNotFound", aws.elb.describe_tags, LoadBalancerNames=["none"])
    aws.elb.delete_load_balancer(LoadBalancerName="none")


def test_several_listeners_can_be_deleted_at_once(aws, create):
    more = [LISTENER | {"LoadBalancerPort": port} for port in (80, 443)]
    create(Listeners=[LISTENER, *more])
    aws.elb.delete_load_balancer_listeners(LoadBalancerName="api", LoadBalancerPorts=[80, 443])
    left = [one["Listener"]["LoadBalancerPort"] for one in _shown(aws)["ListenerDescriptions"]]
    assert left == [6443]
    other = [LISTENER | {"InstancePort": 1}]
    refused("DuplicateListener", aws.elb.create_load_balancer_listeners, LoadBalancerName="api", Listeners=other)


def test_instances_come_into_service_after_a_while(aws, create, launch):
    create()
    instance = {"InstanceId": launch()["InstanceId"]}
    register = aws.elb.register_instances_with_load_balancer
    assert register(LoadBalancerName="api", Instances=[instance])["Instances"] == [instance]
    assert register(LoadBalancerName="api", Instances=[instance])["Instances"] == [instance]
    state = aws.elb.describe_instance_health(LoadBalancerName="api")["InstanceStates"]
    assert [(one["State"], one["ReasonCode"]) for one in state] == [("OutOfService", "ELB")]
    settle()
    state = aws.elb.describe_instance_health(LoadBalancerName="api")["InstanceStates"]
    assert [(one["State"], one["ReasonCode"]) for one in state] == [("InService", "N/A")]
    aws.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    state = aws.elb.describe_instance_health(LoadBalancerName="api")["InstanceStates"]
    assert [(one["State"], one["ReasonCode"]) for one in state] == [("OutOfService", "Instance")]
    left = aws.elb.deregister_instances_from_load_balancer(LoadBalancerName="api", Instances=[instance])
    assert left["Instances"] == []


def test_unknown_and_foreign_instances_are_refused(aws, create, launch):
    create()
    register = aws.elb.register_instances_with_load_balancer
    unknown = [{"InstanceId": "i-00000000000000000"}]
    refused("InvalidInstance", register, LoadBalancerName="api", Instances=unknown)
    vpc = aws.ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24")["Subnet"]["SubnetId"]
    foreign = launch(NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet}])["InstanceId"]
    refused("InvalidInstance", register, LoadBalancerName="api", Instances=[{"InstanceId": foreign}])
    assert _shown(aws)["Instances"] == []


def test_what_a_bed_reports_is_what_is_described(aws, create, launch, control):
    create("reported")
    instance = launch()["InstanceId"]
    aws.elb.register_instances_with_load_balancer(LoadBalancerName="reported", Instances=[{"InstanceId": instance}])
    report = {"loadBalancer": "reported", "instanceId": instance, "port": 6443}

    def state():
        return aws.elb.describe_instance_health(LoadBalancerName="reported")["InstanceStates"][0]["State"]

    control("target-health", report | {"healthy": False})
    settle()
    assert state() == "OutOfService"
    control("target-health", report | {"healthy": True})
    assert state() == "InService"
