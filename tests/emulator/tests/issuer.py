"""An OIDC issuer for tests: signs tokens as a cluster does and publishes its keys in a bucket. Only for these tests."""

import base64
import json
import time
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

AUDIENCE = "sts.amazonaws.com"
SUBJECT = "system:serviceaccount:kube-system:ebs-csi-controller-sa"
_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_CURVES = {"ES256": (ec.SECP256R1(), 32), "ES384": (ec.SECP384R1(), 48)}
OPEN = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": False,
    "RestrictPublicBuckets": False,
}


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _number(value: int, size: int) -> str:
    return _text(value.to_bytes(size, "big"))


class Issuer:
    """One issuer at an address in S3, with one key."""

    def __init__(self, bucket: str, prefix: str = "", algorithm: str = "RS256", by_path: bool = False):
        self.bucket, self.prefix, self.algorithm = bucket, prefix, algorithm
        host = f"s3.us-east-1.amazonaws.com/{bucket}" if by_path else f"{bucket}.s3.us-east-1.amazonaws.com"
        self.name = f"{host}/{prefix}".rstrip("/")
        self.url = f"https://{self.name}"
        self.key = _RSA if algorithm == "RS256" else ec.generate_private_key(_CURVES[algorithm][0])

    def jwk(self) -> dict[str, Any]:
        """The public key as a JWKS has it."""
        numbers = self.key.public_key().public_numbers()
        common = {"use": "sig", "alg": self.algorithm, "kid": "one"}
        if self.algorithm == "RS256":
            return {**common, "kty": "RSA", "n": _number(numbers.n, 256), "e": _number(numbers.e, 3)}
        size = _CURVES[self.algorithm][1]
        return {**common, "kty": "EC", "x": _number(numbers.x, size), "y": _number(numbers.y, size)}

    def documents(self, **discovery: Any) -> dict[str, Any]:
        """Object keys and contents; `discovery` overrides fields of the discovery document."""
        root = f"{self.prefix}/" if self.prefix else ""
        described = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
            **discovery,
        }
        return {
            f"{root}.well-known/openid-configuration": described,
            f"{root}openid/v1/jwks": {"keys": [self.jwk()]},
        }

    def publish(self, s3: Any, **discovery: Any) -> None:
        """Makes the bucket and puts the two documents there for everybody to read."""
        s3.create_bucket(Bucket=self.bucket)
        s3.put_public_access_block(Bucket=self.bucket, PublicAccessBlockConfiguration=OPEN)
        s3.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(self.public_policy()))
        for key, content in self.documents(**discovery).items():
            s3.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(content))

    def public_policy(self) -> dict[str, Any]:
        """Lets everybody read all objects."""
        objects = f"arn:aws:s3:::{self.bucket}/*"
        everything = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": objects}
        return {"Version": "2012-10-17", "Statement": [everything]}

    def token(self, kid: str | None = "one", algorithm: str | None = None, **claims: Any) -> str:
        """A token for the usual service account; `claims` override, None leaves one out."""
        now = int(time.time())
        given = {"iss": self.url, "sub": SUBJECT, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 600, **claims}
        header = {"alg": algorithm or self.algorithm, **({"kid": kid} if kid else {})}
        parts = [header, {name: value for name, value in given.items() if value is not None}]
        signed = ".".join(_text(json.dumps(one).encode()) for one in parts)
        return f"{signed}.{_text(self._sign(signed.encode()))}"

    def _sign(self, content: bytes) -> bytes:
        if self.algorithm == "RS256":
            return self.key.sign(content, padding.PKCS1v15(), hashes.SHA256())
        size = _CURVES[self.algorithm][1]
        used = hashes.SHA256() if self.algorithm == "ES256" else hashes.SHA384()
        halves = decode_dss_signature(self.key.sign(content, ec.ECDSA(used)))
        return b"".join(one.to_bytes(size, "big") for one in halves)

    def trust(self, provider: str, condition: Any = None, **fields: Any) -> str:
        """A trust policy for the usual service account; fields of its statement and its condition can be given."""
        usual = {"StringEquals": {f"{self.name}:sub": SUBJECT, f"{self.name}:aud": AUDIENCE}}
        statement = {
            "Effect": "Allow",
            "Principal": {"Federated": provider},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": usual if condition is None else condition,
            **fields,
        }
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
