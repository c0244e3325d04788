"""Evaluates IAM policy documents: which statements match a request, and whether that allows it.

Pure: it reads documents, never the state of an account. What it does not know (policy variables, operators on
numbers, dates and addresses, keys of conditions) makes an Allow not match and a Deny match, so that a test never
passes by it.
Source: IAM User Guide, "IAM JSON policy elements reference" and "Policy evaluation logic".
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Document = str | bytes | dict[str, Any]


@dataclass
class Request:
    """What is asked: who does what to which resource, in which context."""

    action: str
    #: ARN, or None where it is not known: then every Resource of an Allow fits, and of a Deny only `*`.
    resource: str | None = None
    #: Kind and name, such as `("Federated", "arn:..")`; None for identity policies, which name no principal.
    principal: tuple[str, str] | None = None
    #: Values of condition keys, by key in lower case.
    context: dict[str, list[str]] = field(default_factory=dict)
    #: Beginnings of the keys that `context` is complete in. A condition on any other key keeps an Allow from matching.
    known: tuple[str, ...] = ("",)


def statements(document: Document) -> list[dict[str, Any]]:
    """The statements of a document; ValueError where it is none."""
    content = document if isinstance(document, dict) else json.loads(document)
    if not isinstance(content, dict) or "Statement" not in content:
        raise ValueError("a policy document is a JSON object with Statement")
    found = _listed(content["Statement"])
    if not all(isinstance(one, dict) and one.get("Effect") in ("Allow", "Deny") for one in found):
        raise ValueError("a statement is a JSON object with Effect Allow or Deny")
    return found


def verdict(documents: Iterable[Document], request: Request) -> bool | None:
    """True: allowed, False: denied by a statement, None: nothing says anything. A Deny wins."""
    found = matching(documents, request)
    return all(one["Effect"] == "Allow" for one in found) if found else None


def matching(documents: Iterable[Document], request: Request) -> list[dict[str, Any]]:
    """The statements that say something to a request."""
    return [one for document in documents for one in statements(document) if _applies(one, request)]


def _applies(statement: dict[str, Any], request: Request) -> bool:
    deny = statement["Effect"] == "Deny"
    return (
        _action_fits(statement, request.action)
        and _resource_fits(statement, request.resource, deny)
        and _principal_fits(statement, request.principal, deny)
        and _conditions_hold(statement.get("Condition") or {}, request, deny)
    )


def _action_fits(statement: dict[str, Any], action: str) -> bool:
    if "NotAction" in statement:
        return not _any_like(action.lower(), [one.lower() for one in _listed(statement["NotAction"])])
    return _any_like(action.lower(), [one.lower() for one in _listed(statement.get("Action", []))])


def _resource_fits(statement: dict[str, Any], resource: str | None, deny: bool) -> bool:
    if "NotResource" in statement:
        return not deny if resource is None else not _any_like(resource, _listed(statement["NotResource"]))
    patterns = _listed(statement.get("Resource", "*"))
    if resource is None:
        return "*" in patterns if deny else bool(patterns)
    return _any_like(resource, patterns)


def _principal_fits(statement: dict[str, Any], principal: tuple[str, str] | None, deny: bool) -> bool:
    if principal is None:
        return True
    if "NotPrincipal" in statement:
        return deny
    kind, name = principal
    named = statement.get("Principal")
    if not isinstance(named, dict):
        return named == "*"
    return name in _listed(named.get(kind, [])) or "*" in _listed(named.get("AWS", []))


def _conditions_hold(conditions: dict[str, Any], request: Request, deny: bool) -> bool:
    for operator, wanted in conditions.items():
        for key, values in wanted.items():
            if not key.lower().startswith(request.known):
                if not deny:
                    return False
            elif not _holds(operator, [_text(one) for one in _listed(values)], request.context.get(key.lower()), deny):
                return False
    return True


def _holds(operator: str, wanted: list[str], given: list[str] | None, deny: bool) -> bool:
    quantifier, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists").lower()
    if name == "null":
        return (given is None) == (wanted == ["true"])
    if name not in _OPERATORS:
        return deny
    compare, positive = _OPERATORS[name]
    if not given:
        return optional or quantifier == "ForAllValues" or (not positive and not quantifier)
    fits = [any(compare(one, pattern) for pattern in wanted) == positive for one in given]
    if quantifier == "ForAnyValue" or (not quantifier and positive):
        return any(fits)
    return all(fits)


def _equal_ignoring_case(value: str, wanted: str) -> bool:
    return value.lower() == wanted.lower()


#: Comparison, and whether a match is what the operator wants.
_OPERATORS: dict[str, tuple[Callable[[str, str], bool], bool]] = {
    "stringequals": (str.__eq__, True),
    "stringnotequals": (str.__eq__, False),
    "stringequalsignorecase": (_equal_ignoring_case, True),
    "stringnotequalsignorecase": (_equal_ignoring_case, False),
    "stringlike": (lambda value, pattern: like(value, pattern), True),
    "stringnotlike": (lambda value, pattern: like(value, pattern), False),
    "arnequals": (lambda value, pattern: like(value, pattern), True),
    "arnlike": (lambda value, pattern: like(value, pattern), True),
    "arnnotequals": (lambda value, pattern: like(value, pattern), False),
    "arnnotlike": (lambda value, pattern: like(value, pattern), False),
    "bool": (_equal_ignoring_case, True),
}


def like(value: str, pattern: str) -> bool:
    """Whether a value fits a pattern of IAM: `*` is any text, `?` any one character, all else itself."""
    return _pattern(pattern).fullmatch(value) is not None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(one) or re.escape(one) for one in pattern), re.DOTALL)


def _any_like(value: str, patterns: list[str]) -> bool:
    return any(like(value, pattern) for pattern in patterns)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
