"""AssumeRoleWithWebIdentity: who gets credentials, who does not, and with which error."""

import json
import time
from types import SimpleNamespace

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from conftest import refused
from issuer import AUDIENCE, OPEN, SUBJECT, Issuer

DENIED = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
NO_KEY = "Couldn't retrieve verification key from your identity provider"
_numbers = iter(range(10**6))


@pytest.fixture
def unsigned(endpoint):
    """STS without credentials, as pods call it."""
    config = Config(signature_version=UNSIGNED, parameter_validation=False)
    return boto3.client("sts", endpoint_url=endpoint, region_name="us-east-1", config=config)


def _made(aws, issuer=None, publish=True, audiences=(AUDIENCE,)):
    """A published issuer, its provider in IAM, and a role that trusts it."""
    issuer = issuer or Issuer(f"issuer-{next(_numbers)}", "one")
    if publish:
        issuer.publish(aws.s3)
    provider = aws.iam.create_open_id_connect_provider(Url=issuer.url, ClientIDList=list(audiences))
    provider = provider["OpenIDConnectProviderArn"]
    role = aws.iam.create_role(RoleName="ebs-csi", AssumeRolePolicyDocument=issuer.trust(provider))["Role"]["Arn"]
    return SimpleNamespace(issuer=issuer, provider=provider, role=role)


def _assume(unsigned, made, token=None, **fields):
    given = {"RoleArn": made.role, "RoleSessionName": "pod", "WebIdentityToken": token or made.issuer.token(), **fields}
    return unsigned.assume_role_with_web_identity(**given)


def _trust(aws, made, condition=None, **fields):
    document = made.issuer.trust(made.provider, condition, **fields)
    aws.iam.update_assume_role_policy(RoleName="ebs-csi", PolicyDocument=document)


def _denied(unsigned, made, **fields):
    assert DENIED in str(refused("AccessDenied", _assume, unsigned, made, **fields))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES384"])
@pytest.mark.parametrize("by_path", [False, True])
def test_a_valid_token_gives_credentials_of_the_role(aws, unsigned, endpoint, control, algorithm, by_path):
    issuer = Issuer(f"issuer-{next(_numbers)}", "a/b", algorithm, by_path)
    made = _made(aws, issuer)
    answer = _assume(unsigned, made)
    assert answer["SubjectFromWebIdentityToken"] == SUBJECT and answer["Audience"] == AUDIENCE
    assert answer["Provider"] == made.provider
    account = made.role.split(":")[4]
    assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{account}:assumed-role/ebs-csi/pod"
    held = answer["Credentials"]
    session = {
        "aws_access_key_id": held["AccessKeyId"],
        "aws_secret_access_key": held["SecretAccessKey"],
        "aws_session_token": held["SessionToken"],
    }
    start = control("calls")["next"]
    sts = boto3.client("sts", endpoint_url=endpoint, region_name="us-east-1", **session)
    assert sts.get_caller_identity()["Arn"] == answer["AssumedRoleUser"]["Arn"]
    assert [one["caller"] for one in control(f"calls?since={start}")["calls"]] == ["ebs-csi"]


def test_an_sdk_assumes_the_role_by_itself_as_in_a_pod(aws, endpoint, control, monkeypatch, tmp_path):
    made = _made(aws)
    allow = {"Effect": "Allow", "Action": "ec2:DescribeVolumes", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    aws.iam.put_role_policy(RoleName="ebs-csi", PolicyName="volumes", PolicyDocument=document)
    token = tmp_path / "token"
    token.write_text(made.issuer.token())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ROLE_ARN", made.role)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    start = control("calls")["next"]
    boto3.Session(region_name="us-east-1").client("ec2").describe_volumes()
    shown = [(one["service"], one["action"], one["caller"]) for one in control(f"calls?since={start}")["calls"]]
    assert shown == [("sts", "AssumeRoleWithWebIdentity", "anonymous"), ("ec2", "DescribeVolumes", "ebs-csi")]


def test_an_issuer_at_the_root_of_a_bucket_works(aws, unsigned):
    _assume(unsigned, _made(aws, Issuer(f"issuer-{next(_numbers)}")))


def test_only_a_provider_of_the_roles_account_counts(aws, unsigned):
    made = _made(aws)
    aws.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=made.provider)
    error = refused("InvalidIdentityToken", _assume, unsigned, made)
    assert f"No OpenIDConnect provider found in your account for {made.issuer.url}" in str(error)


def test_a_token_of_another_key_is_refused(aws, unsigned):
    made = _made(aws, Issuer(f"issuer-{next(_numbers)}", "one", "ES256"))
    other = Issuer(made.issuer.bucket, "one", "ES256")
    assert "signature" in str(refused("InvalidIdentityToken", _assume, unsigned, made, other.token()))
    genuine = made.issuer.token().split(".")
    forged = ".".join([genuine[0], made.issuer.token(sub="system:serviceaccount:a:b").split(".")[1], genuine[2]])
    assert "signature" in str(refused("InvalidIdentityToken", _assume, unsigned, made, forged))


@pytest.mark.parametrize(
    "fields", [{"kid": "two"}, {"algorithm": "none"}, {"algorithm": "HS256"}, {"algorithm": "ES256"}]
)
def test_a_token_without_a_fitting_published_key_is_refused(aws, unsigned, fields):
    made = _made(aws)
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made, made.issuer.token(**fields)))


def test_what_is_no_token_is_refused(aws, unsigned):
    made = _made(aws)
    for text in ("nonsense", "a.b.c", "e30.e30.e30"):
        refused("InvalidIdentityToken", _assume, unsigned, made, text)
    for claim in ({"sub": None}, {"aud": None}, {"exp": None}, {"exp": "soon"}):
        refused("InvalidIdentityToken", _assume, unsigned, made, made.issuer.token(**claim))


def test_keys_are_read_at_exactly_the_issuers_address(aws, unsigned):
    made = _made(aws)
    jwks = f"{made.issuer.prefix}/openid/v1/jwks"
    held = aws.s3.get_object(Bucket=made.issuer.bucket, Key=jwks)["Body"].read()
    aws.s3.delete_object(Bucket=made.issuer.bucket, Key=jwks)
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))
    aws.s3.put_object(Bucket=made.issuer.bucket, Key=jwks, Body=held)
    _assume(unsigned, made)


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://elsewhere.s3.us-east-1.amazonaws.com"},
        {"jwks_uri": "https://elsewhere.s3.us-east-1.amazonaws.com/jwks"},
        {"jwks_uri": "https://example.org/jwks"},
        {"response_types_supported": None},
    ],
)
def test_a_wrong_discovery_document_is_refused(aws, unsigned, discovery):
    issuer = Issuer(f"issuer-{next(_numbers)}", "one")
    issuer.publish(aws.s3, **discovery)
    made = _made(aws, issuer, publish=False)
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))


def test_the_bucket_must_be_in_the_region_that_the_issuer_names(aws, unsigned):
    issuer = Issuer(f"issuer-{next(_numbers)}", "one")
    west = aws.client("s3", region="us-west-2")
    west.create_bucket(Bucket=issuer.bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    west.put_public_access_block(Bucket=issuer.bucket, PublicAccessBlockConfiguration=OPEN)
    west.put_bucket_policy(Bucket=issuer.bucket, Policy=json.dumps(issuer.public_policy()))
    for key, content in issuer.documents().items():
        west.put_object(Bucket=issuer.bucket, Key=key, Body=json.dumps(content))
    made = _made(aws, issuer, publish=False)
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))


def test_documents_that_are_not_public_are_not_read(aws, unsigned):
    made = _made(aws)
    bucket = made.issuer.bucket
    _assume(unsigned, made)
    aws.s3.put_public_access_block(
        Bucket=bucket, PublicAccessBlockConfiguration={**OPEN, "RestrictPublicBuckets": True}
    )
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))
    aws.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    aws.s3.delete_bucket_policy(Bucket=bucket)
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))
    only_discovery = made.issuer.public_policy()
    only_discovery["Statement"][0]["Resource"] = f"arn:aws:s3:::{bucket}/one/.well-known/*"
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(only_discovery))
    assert NO_KEY in str(refused("InvalidIdentityToken", _assume, unsigned, made))


def test_an_audience_must_be_a_client_of_the_provider(aws, unsigned):
    made = _made(aws, audiences=["another"])
    assert "Incorrect token audience" in str(refused("InvalidIdentityToken", _assume, unsigned, made))


def test_a_tokens_time_counts(aws, unsigned):
    made = _made(aws)
    now = int(time.time())
    refused("ExpiredTokenException", _assume, unsigned, made, made.issuer.token(exp=now - 1))
    refused("InvalidIdentityToken", _assume, unsigned, made, made.issuer.token(nbf=now + 300))


def test_a_role_that_does_not_exist_is_not_told_apart(aws, unsigned):
    made = _made(aws)
    made.role += "x"
    _denied(unsigned, made)


@pytest.mark.parametrize(
    ("condition", "allowed"),
    [
        ({}, True),
        ({"StringEquals": {"{name}:sub": SUBJECT}}, True),
        ({"StringEquals": {"{name}:sub": ["system:serviceaccount:a:b", SUBJECT]}}, True),
        ({"StringEquals": {"{name}:sub": "system:serviceaccount:kube-system:*"}}, False),
        ({"StringLike": {"{name}:sub": "system:serviceaccount:kube-system:*"}}, True),
        ({"StringLike": {"{name}:sub": "system:serviceaccount:kube-system:ebs-csi-controller-s?"}}, True),
        ({"StringLike": {"{name}:sub": "system:serviceaccount:default:*"}}, False),
        ({"ForAnyValue:StringLike": {"{name}:sub": ["system:serviceaccount:kube-system:*"]}}, True),
        ({"ForAllValues:StringEquals": {"{name}:aud": [AUDIENCE, "b"]}}, True),
        ({"StringEqualsIgnoreCase": {"{name}:sub": SUBJECT.upper()}}, True),
        ({"StringNotEquals": {"{name}:sub": SUBJECT}}, False),
        ({"StringEquals": {"{name}:aud": "amazonaws.com"}}, False),
        ({"StringEquals": {"{name}:sub": SUBJECT, "{name}:aud": "other"}}, False),
        ({"StringEquals": {"{name}:sub": SUBJECT}, "StringLike": {"{name}:aud": "other*"}}, False),
        ({"StringEquals": {"{NAME}:SUB": SUBJECT}}, True),
        ({"StringEquals": {"https://{name}:sub": SUBJECT}}, False),
        ({"StringEqualsIfExists": {"https://{name}:sub": SUBJECT}}, True),
        ({"StringEqualsIfExists": {"{name}:sub": "other"}}, False),
        ({"Null": {"{name}:sub": "false"}}, True),
        ({"NumericLessThan": {"{name}:sub": "1"}}, False),
    ],
)
def test_conditions_of_the_trust_policy_are_evaluated(aws, unsigned, condition, allowed):
    made = _made(aws)
    name = made.issuer.name
    text = json.dumps(condition).replace("{name}", name).replace("{NAME}", name.upper()).replace(":SUB", ":sub")
    _trust(aws, made, json.loads(text))
    if allowed:
        _assume(unsigned, made)
    else:
        _denied(unsigned, made)


def test_the_trust_policy_must_name_the_provider_and_the_action(aws, unsigned):
    made = _made(aws)
    account = made.role.split(":")[4]
    _trust(aws, made, Principal={"Federated": f"arn:aws:iam::{account}:oidc-provider/other.example.org"})
    _denied(unsigned, made)
    _trust(aws, made, Principal={"Federated": ["arn:aws:iam::1:oidc-provider/a", made.provider]})
    _assume(unsigned, made)
    _trust(aws, made, Principal={"Service": "ec2.amazonaws.com"}, Action="sts:AssumeRole", Condition={})
    _denied(unsigned, made)


def test_a_deny_wins(aws, unsigned):
    made = _made(aws)
    document = json.loads(made.issuer.trust(made.provider))
    denied = {**document["Statement"][0], "Effect": "Deny"}
    document["Statement"].append(denied)
    aws.iam.update_assume_role_policy(RoleName="ebs-csi", PolicyDocument=json.dumps(document))
    _denied(unsigned, made)
    denied["Condition"] = {"StringEquals": {f"{made.issuer.name}:sub": "system:serviceaccount:a:b"}}
    aws.iam.update_assume_role_policy(RoleName="ebs-csi", PolicyDocument=json.dumps(document))
    _assume(unsigned, made)


def test_sessions_last_as_long_as_the_role_allows(aws, unsigned):
    made = _made(aws)
    for seconds in (899, 3601):
        refused("ValidationError", _assume, unsigned, made, DurationSeconds=seconds)
    ends = _assume(unsigned, made, DurationSeconds=900)["Credentials"]["Expiration"]
    assert 800 < ends.timestamp() - time.time() <= 901
