"""The control API: call log, world, account and interventions."""

import json
import time

from conftest import refused, settle, state_of


def test_calls_are_logged_with_answer_and_caller(aws, control):
    start = control("calls")["next"]
    begun = time.time()
    aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    refused("InvalidVpcID.NotFound", aws.ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"])
    aws.elb.describe_load_balancers()
    aws.elbv2.describe_load_balancers()
    refused("ResourceNotFoundException", aws.secretsmanager.get_secret_value, SecretId="none")
    aws.secretsmanager.create_secret(Name="s", SecretString="x")
    answer = control(f"calls?since={start}")
    shown = [(one["service"], one["action"], one["status"], one["code"], one["write"]) for one in answer["calls"]]
    assert shown == [
        ("ec2", "CreateVpc", 200, None, True),
        ("ec2", "DescribeVpcs", 400, "InvalidVpcID.NotFound", False),
        ("elb", "DescribeLoadBalancers", 200, None, False),
        ("elbv2", "DescribeLoadBalancers", 200, None, False),
        ("secretsmanager", "GetSecretValue", 400, "ResourceNotFoundException", False),
        ("secretsmanager", "CreateSecret", 200, None, True),
    ]
    assert all(one["caller"] == "tester/session" and one["region"] == "us-east-1" for one in answer["calls"])
    assert all(begun - 1 <= one["time"] <= time.time() + 1 for one in answer["calls"])
    named = [one["resources"] for one in answer["calls"]]
    assert named == [[], ["vpc-00000000000000000"], [], [], ["none"], ["s"]]
    assert [one["sequence"] for one in answer["calls"]] == list(range(start + 1, start + 7))
    assert control(f"calls?since={answer['next']}")["calls"] == []


def test_the_account_lists_what_was_made_and_nothing_that_is_always_there(aws, network, launch, control):
    instance = launch()["InstanceId"]
    secret = "bootstrap/one"
    aws.secretsmanager.create_secret(Name=secret, SecretString="x")
    left = control("account")
    assert network.vpc in left["vpc"] and set(network.subnets) <= set(left["subnet"])
    assert network.gateway in left["internet-gateway"] and network.group in left["security-group"]
    assert instance in left["instance"] and secret in left["secret"]
    aws.secretsmanager.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    left = control("account")
    assert instance not in left["instance"] and secret not in left["secret"]
    default = aws.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    assert default not in left["vpc"]


def test_the_account_lists_what_add_ons_make_until_it_is_gone(aws, network, control):
    def own():
        return {kind: {one for one in ids if one in made[kind]} for kind, ids in control("account").items() if kind in made}

    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    name = f"account-{network.vpc}"
    aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)
    allow = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
    policy = aws.iam.create_policy(PolicyName=name, PolicyDocument=allow)["Policy"]["Arn"]
    provider = aws.iam.create_open_id_connect_provider(Url=f"https://{name}.example.org")["OpenIDConnectProviderArn"]
    aws.s3.create_bucket(Bucket=name)
    aws.s3.put_object(Bucket=name, Key="a/b", Body=b"")
    volume = aws.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
    system = aws.efs.create_file_system(CreationToken="one")["FileSystemId"]
    settle()
    target = aws.efs.create_mount_target(FileSystemId=system, SubnetId=network.subnet)["MountTargetId"]
    point = aws.efs.create_access_point(FileSystemId=system, ClientToken="a")["AccessPointId"]
    group = aws.elbv2.create_target_group(Name="t", Protocol="TCP", Port=1, VpcId=network.vpc)
    group = group["TargetGroups"][0]["TargetGroupArn"]
    made = {
        "role": {name},
        "policy": {policy},
        "oidc-provider": {provider},
        "bucket": {name},
        "object": {f"{name}/a/b"},
        "volume": {volume},
        "file-system": {system},
        "mount-target": {target},
        "access-point": {point},
        "target-group": {group},
    }
    assert own() == made
    aws.iam.delete_role(RoleName=name)
    aws.iam.delete_policy(PolicyArn=policy)
    aws.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=provider)
    aws.s3.delete_object(Bucket=name, Key="a/b")
    aws.s3.delete_bucket(Bucket=name)
    aws.ec2.delete_volume(VolumeId=volume)
    aws.elbv2.delete_target_group(TargetGroupArn=group)
    aws.efs.delete_mount_target(MountTargetId=target)
    settle()
    aws.efs.delete_file_system(FileSystemId=system)
    assert own()["file-system"] == {system}
    settle()
    assert not any(own().values())


def test_roles_that_every_account_has_are_left_out(aws, control):
    arn = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"
    aws.iam.get_policy(PolicyArn=arn)
    roles = [one["RoleName"] for one in aws.iam.list_roles()["Roles"]]
    left = control("account")
    assert roles and not set(roles) & (set(left["role"]) | set(left["instance-profile"])) and arn not in left["policy"]


def test_an_instance_can_be_terminated_behind_everybodys_back(aws, launch, control):
    made = launch()["InstanceId"]
    start = control("calls")["next"]
    control("terminate", {"instanceId": made})
    assert control(f"calls?since={start}")["calls"] == []
    assert state_of(aws, made) == "shutting-down"
