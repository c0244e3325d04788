"""JSON web tokens as identity providers sign them: taken apart, and checked against published keys.

Knows RSA (RS256, RS384, RS512) and elliptic curves (ES256, ES384, ES512), as STS does. It looks at signatures
only; what the claims mean is the caller's business.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

_HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
#: Curve, and bytes of each half of a signature.
_CURVES = {"ES256": (ec.SECP256R1, 32), "ES384": (ec.SECP384R1, 48), "ES512": (ec.SECP521R1, 66)}


@dataclass
class Token:
    """The parts of a token, none of them checked."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    @property
    def audiences(self) -> list[str]:
        """Whom the token is for; one or several."""
        given = self.claims.get("aud", [])
        return [given] if isinstance(given, str) else list(given)


def decode(text: str) -> Token:
    """Takes a token apart; ValueError where it is none."""
    parts = text.split(".")
    if len(parts) != 3:
        raise ValueError("a token has three parts")
    header, claims = (json.loads(_bytes(one)) for one in parts[:2])
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise ValueError("header and claims are JSON objects")
    return Token(header, claims, f"{parts[0]}.{parts[1]}".encode(), _bytes(parts[2]))


def signed_by(token: Token, keys: list[dict[str, Any]]) -> bool | None:
    """Whether one of the keys (a JWKS's `keys`) signed the token; None where none of them could have."""
    fitting = [one for one in keys if _fits(token, one)]
    if not fitting:
        return None
    return any(_verifies(token, one) for one in fitting)


def _fits(token: Token, key: dict[str, Any]) -> bool:
    algorithm = str(token.header.get("alg"))
    kind = {"RS": "RSA", "ES": "EC"}.get(algorithm[:2])
    return (
        kind is not None
        and algorithm[2:] in _HASHES
        and key.get("kty") == kind
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (token.header.get("kid") is None or key.get("kid") == token.header["kid"])
    )


def _verifies(token: Token, key: dict[str, Any]) -> bool:
    algorithm = token.header["alg"]
    try:
        if key["kty"] == "RSA":
            public = rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
            public.verify(token.signature, token.signed, padding.PKCS1v15(), _HASHES[algorithm[2:]]())
        else:
            curve, size = _CURVES[algorithm]
            point = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), curve()).public_key()
            if len(token.signature) != 2 * size:
                return False
            halves = (int.from_bytes(one, "big") for one in (token.signature[:size], token.signature[size:]))
            point.verify(encode_dss_signature(*halves), token.signed, ec.ECDSA(_HASHES[algorithm[2:]]()))
    except (InvalidSignature, KeyError, ValueError):
        return False
    return True


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")
