"""IAM: what goes over the wire, what is refused, and pages."""

import json
from urllib.parse import unquote

import pytest
from conftest import refused

POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:volume/*"}],
    }
)
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
URL = "https://issuer-a.s3.us-east-1.amazonaws.com/one"
MANAGED = "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"


def _role(aws, name="node", **fields):
    return aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST, **fields)["Role"]


def _policy(aws, name="volumes"):
    return aws.iam.create_policy(PolicyName=name, PolicyDocument=POLICY)["Policy"]["Arn"]


def _on_the_wire(aws, action, call):
    """The body of an answer before boto3 decodes the documents in it."""
    seen = []

    def see(response_dict, **_):
        seen.append(response_dict["body"])

    aws.iam.meta.events.register(f"before-parse.iam.{action}", see)
    answer = call()
    return seen[0].decode(), answer


def test_documents_are_percent_encoded_on_the_wire(aws):
    _role(aws)
    arn = _policy(aws)
    aws.iam.put_role_policy(RoleName="node", PolicyName="inline", PolicyDocument=POLICY)
    calls = {
        "GetRole": (TRUST, lambda: aws.iam.get_role(RoleName="node")["Role"]["AssumeRolePolicyDocument"]),
        "ListRoles": (TRUST, lambda: aws.iam.list_roles(PathPrefix="/")["Roles"][-1]["AssumeRolePolicyDocument"]),
        "GetRolePolicy": (
            POLICY,
            lambda: aws.iam.get_role_policy(RoleName="node", PolicyName="inline")["PolicyDocument"],
        ),
        "GetPolicyVersion": (
            POLICY,
            lambda: aws.iam.get_policy_version(PolicyArn=arn, VersionId="v1")["PolicyVersion"]["Document"],
        ),
    }
    for action, (document, call) in calls.items():
        body, decoded = _on_the_wire(aws, action, call)
        assert decoded == json.loads(document), action
        shown = [one.split("<")[0] for one in body.split("Document>")[1::2]]
        assert shown and all(set("{}\"/:* ").isdisjoint(one) and "%7B" in one for one in shown), action
        assert document in [unquote(one) for one in shown], action


def test_a_trust_policy_is_checked_when_it_is_made(aws):
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    without = {name: value for name, value in statement.items() if name != "Principal"}
    for document in (
        "nonsense",
        json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Resource": "*"}]}),
        json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Action": "s3:GetObject"}]}),
        json.dumps({"Version": "2012-10-17", "Statement": [without]}),
    ):
        refused("MalformedPolicyDocument", aws.iam.create_role, RoleName="bad", AssumeRolePolicyDocument=document)
    refused("NoSuchEntity", aws.iam.get_role, RoleName="bad")


def test_a_role_names_its_boundary_which_must_exist(aws):
    arn = _policy(aws)
    _role(aws, PermissionsBoundary=arn)
    assert aws.iam.get_role(RoleName="node")["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"] == arn
    refused("NoSuchEntity", _role, aws, "other", PermissionsBoundary=arn + "x")
    refused("NoSuchEntity", aws.iam.put_role_permissions_boundary, RoleName="node", PermissionsBoundary=arn + "x")


def test_policies_of_a_role_come_in_pages(aws):
    _role(aws)
    names = [f"policy-{number}" for number in range(5)]
    for name in names:
        aws.iam.put_role_policy(RoleName="node", PolicyName=name, PolicyDocument=POLICY)
        aws.iam.attach_role_policy(RoleName="node", PolicyArn=_policy(aws, name))
    first = aws.iam.list_role_policies(RoleName="node", MaxItems=2)
    assert len(first["PolicyNames"]) == 2 and first["IsTruncated"] and first["Marker"]
    pages = aws.iam.get_paginator("list_role_policies").paginate(RoleName="node", PaginationConfig={"PageSize": 2})
    assert [one for page in pages for one in page["PolicyNames"]] == names
    pages = aws.iam.get_paginator("list_attached_role_policies").paginate(
        RoleName="node", PaginationConfig={"PageSize": 2}
    )
    shown = [[one["PolicyName"] for one in page["AttachedPolicies"]] for page in pages]
    assert shown == [names[:2], names[2:4], names[4:]]
    assert aws.iam.list_role_policies(RoleName="node")["IsTruncated"] is False


def test_awss_own_policies_can_be_attached_and_read(aws):
    _role(aws)
    aws.iam.attach_role_policy(RoleName="node", PolicyArn=MANAGED)
    policy = aws.iam.get_policy(PolicyArn=MANAGED)["Policy"]
    version = aws.iam.get_policy_version(PolicyArn=MANAGED, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    assert "ec2:CreateVolume" in json.dumps(version["Document"])
    refused("NoSuchEntity", aws.iam.attach_role_policy, RoleName="node", PolicyArn="arn:aws:iam::aws:policy/NoneSuch")
    wrong_path = "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicy"
    refused("NoSuchEntity", aws.iam.get_policy, PolicyArn=wrong_path)


def test_a_policy_in_use_cannot_be_deleted(aws):
    _role(aws)
    arn = _policy(aws)
    aws.iam.attach_role_policy(RoleName="node", PolicyArn=arn)
    refused("DeleteConflict", aws.iam.delete_policy, PolicyArn=arn)
    aws.iam.detach_role_policy(RoleName="node", PolicyArn=arn)
    aws.iam.create_policy_version(PolicyArn=arn, PolicyDocument=POLICY)
    refused("DeleteConflict", aws.iam.delete_policy, PolicyArn=arn)
    aws.iam.delete_policy_version(PolicyArn=arn, VersionId="v2")
    aws.iam.delete_policy(PolicyArn=arn)


def test_a_provider_is_known_by_its_address_without_scheme(aws):
    arn = aws.iam.create_open_id_connect_provider(Url=URL, ClientIDList=["a"])["OpenIDConnectProviderArn"]
    assert arn.endswith(":oidc-provider/" + URL.removeprefix("https://"))
    shown = aws.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    assert shown["Url"] == URL.removeprefix("https://") and shown["ClientIDList"] == ["a"]
    assert len(shown["ThumbprintList"][0]) == 40
    error = refused("EntityAlreadyExists", aws.iam.create_open_id_connect_provider, Url=URL)
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 409
    aws.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    refused("NoSuchEntity", aws.iam.get_open_id_connect_provider, OpenIDConnectProviderArn=arn)


@pytest.mark.parametrize(
    "url", ["http://a.example.org", "a.example.org", "https://a.example.org?x=y", "https://a.example.org:8443", ""]
)
def test_a_provider_needs_an_address_that_works(aws, url):
    refused("ValidationError", aws.iam.create_open_id_connect_provider, Url=url)


def test_thumbprints_have_their_length(aws):
    refused("ValidationError", aws.iam.create_open_id_connect_provider, Url=URL, ThumbprintList=["abc"])


def test_audiences_of_a_provider_can_change(aws):
    arn = aws.iam.create_open_id_connect_provider(Url=URL, ClientIDList=["a"])["OpenIDConnectProviderArn"]
    for name in ("b", "b"):
        aws.iam.add_client_id_to_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID=name)
    assert aws.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)["ClientIDList"] == ["a", "b"]
    aws.iam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID="a")
    assert aws.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)["ClientIDList"] == ["b"]


def test_tags_of_a_provider_are_set_one_by_one(aws):
    def tags():
        shown = aws.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)["Tags"]
        return {one["Key"]: one["Value"] for one in shown}

    arn = aws.iam.create_open_id_connect_provider(Url=URL, Tags=[{"Key": "a", "Value": "1"}])["OpenIDConnectProviderArn"]
    aws.iam.tag_open_id_connect_provider(OpenIDConnectProviderArn=arn, Tags=[{"Key": "b", "Value": "x/y"}])
    assert tags() == {"a": "1", "b": "x/y"}
    aws.iam.tag_open_id_connect_provider(OpenIDConnectProviderArn=arn, Tags=[{"Key": "a", "Value": "2"}])
    assert tags() == {"a": "2", "b": "x/y"}
    wrong = [{"Key": "c", "Value": "a;b"}]
    refused("ValidationError", aws.iam.tag_open_id_connect_provider, OpenIDConnectProviderArn=arn, Tags=wrong)
    many = [{"Key": f"k{number}", "Value": ""} for number in range(49)]
    refused("LimitExceeded", aws.iam.tag_open_id_connect_provider, OpenIDConnectProviderArn=arn, Tags=many)
    refused("NoSuchEntity", aws.iam.tag_open_id_connect_provider, OpenIDConnectProviderArn=arn + "x", Tags=[])
