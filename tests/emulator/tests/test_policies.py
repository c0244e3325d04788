"""The evaluation of policy documents, without AWS around it: what fits, what wins, and what is not understood."""

import json

import pytest

from emulator.policies import Request, like, statements, verdict

ARN = "arn:aws:s3:::bucket/a/b"


def _said(statement, **asked):
    asked = {"action": "s3:GetObject", "resource": ARN, **asked}
    return verdict([{"Statement": statement}], Request(**asked))


def _allow(**fields):
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **fields}


def _deny(**fields):
    return {**_allow(**fields), "Effect": "Deny"}


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({}, True),
        ({"Action": "S3:getobject"}, True),
        ({"Action": ["s3:PutObject", "s3:Get*"]}, True),
        ({"Action": "s3:Get?bject"}, True),
        ({"Action": "s3:Get"}, None),
        ({"Action": "*"}, True),
        ({"Action": None, "NotAction": "s3:Put*"}, True),
        ({"Action": None, "NotAction": ["s3:Put*", "s3:Get*"]}, None),
        ({"Resource": "arn:aws:s3:::bucket/*"}, True),
        ({"Resource": ["arn:aws:s3:::other/*", ARN]}, True),
        ({"Resource": "arn:aws:s3:::bucket"}, None),
        ({"Resource": "arn:aws:s3:::BUCKET/*"}, None),
        ({"NotResource": "arn:aws:s3:::bucket/*"}, None),
        ({"NotResource": "arn:aws:s3:::other/*"}, True),
    ],
)
def test_actions_and_resources_fit_with_wildcards(fields, allowed):
    statement = {name: value for name, value in _allow(**fields).items() if value is not None}
    assert _said(statement) is allowed


def test_a_deny_wins_wherever_it_stands():
    for statement in ([_allow(), _deny()], [_deny(), _allow()]):
        assert _said(statement) is False
    assert verdict([{"Statement": _deny()}, {"Statement": _allow()}], Request("s3:GetObject", ARN)) is False
    assert _said([_allow(), _deny(Action="s3:PutObject")]) is True
    assert _said([]) is None


def test_a_resource_that_is_not_known_fits_an_allow_and_not_a_narrow_deny():
    narrow = "arn:aws:ec2:*:*:volume/*"
    assert _said(_allow(Resource=narrow), resource=None) is True
    assert _said([_allow(), _deny(Resource=narrow)], resource=None) is True
    assert _said([_allow(), _deny()], resource=None) is False


@pytest.mark.parametrize(
    ("principal", "allowed"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"Federated": "arn:one"}, True),
        ({"Federated": ["arn:two", "arn:one"]}, True),
        ({"Federated": "arn:*"}, None),
        ({"Service": "arn:one"}, None),
        (None, None),
    ],
)
def test_a_principal_is_named_by_kind_and_exactly(principal, allowed):
    assert _said(_allow(Principal=principal), principal=("Federated", "arn:one")) is allowed


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"Bool": {"aws:SecureTransport": True}}, True),
        ({"Bool": {"aws:SecureTransport": "false"}}, False),
        ({"Null": {"absent": "true"}}, True),
        ({"Null": {"absent": "false", "many": "false"}}, False),
        ({"StringEquals": {"absent": "a"}}, False),
        ({"StringNotEquals": {"absent": "a"}}, True),
        ({"StringEqualsIfExists": {"absent": "a"}}, True),
        ({"StringNotEquals": {"many": "a"}}, False),
        ({"ForAnyValue:StringNotEquals": {"many": "a"}}, True),
        ({"ForAllValues:StringNotEquals": {"many": "a"}}, False),
        ({"ForAllValues:StringLike": {"many": ["a*", "b*"]}}, True),
        ({"ForAllValues:StringEquals": {"many": ["a"]}}, False),
        ({"ForAllValues:StringEquals": {"absent": ["a"]}}, True),
        ({"ForAnyValue:StringEquals": {"absent": ["a"]}}, False),
        ({"ArnLike": {"one": "arn:aws:iam::*:role/x"}}, True),
        ({"ArnNotLike": {"one": "arn:aws:iam::*:role/x"}}, False),
        ({"StringEquals": {"one": "arn:aws:iam::1:role/x"}, "Bool": {"aws:SecureTransport": "false"}}, False),
    ],
)
def test_conditions_hold_or_not(condition, holds):
    context = {"aws:securetransport": ["true"], "many": ["a", "b"], "one": ["arn:aws:iam::1:role/x"]}
    assert (_said(_allow(Condition=condition), context=context) is True) is holds


def test_what_is_not_understood_never_helps():
    unknown = {"NumericLessThan": {"one": "1"}}
    assert _said(_allow(Condition=unknown), context={"one": ["0"]}) is None
    assert _said([_allow(), _deny(Condition=unknown)], context={"one": ["0"]}) is False


def test_a_condition_on_a_key_that_nobody_knows_never_helps():
    for condition in ({"StringEquals": {"aws:ResourceTag/a": "b"}}, {"Null": {"aws:ResourceTag/a": "true"}}):
        assert _said(_allow(Condition=condition), known=("aws:requesttag/",)) is None
        assert _said([_allow(), _deny(Condition=condition)], known=("aws:requesttag/",)) is False


def test_wildcards_are_those_of_iam_only():
    assert like("a[1].b", "a[1]*") and not like("a1b", "a[1]b") and like("a\nb", "a*b") and not like("ab", "a.?")


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"Statement": [1]}', '{"Statement": {"Effect": "Maybe"}}'])
def test_what_is_no_document_is_an_error(text):
    with pytest.raises(ValueError):
        statements(text)


def test_a_document_may_have_one_statement_or_several():
    assert len(statements(json.dumps({"Statement": _allow()}))) == 1 == len(statements({"Statement": [_allow()]}))
