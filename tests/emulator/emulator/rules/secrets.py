"""Secrets: at most 64 KiB each; refused as AWS refuses, also a name that waits for its deletion."""

import base64

from moto.secretsmanager.exceptions import InvalidRequestException, SecretsManagerClientError, ValidationException

from emulator.hooks import Call, before

#: Secrets Manager's limit on one value, in bytes.
LIMIT = 65536

# Every refusal of Secrets Manager has status 400; moto answers 404 for what is not there.
SecretsManagerClientError.code = property(lambda self: 400, lambda self, value: None)


@before("secretsmanager", "CreateSecret", "PutSecretValue", "UpdateSecret")
def small_enough(call: Call) -> None:
    """Counts the bytes of the text, or of the binary value before its base64 encoding."""
    text, binary = call.get("SecretString"), call.get("SecretBinary")
    size = len(text.encode()) if text else 0
    if binary:
        size = len(base64.b64decode(binary))
    if size > LIMIT:
        field = "secretString" if text else "secretBinary"
        raise ValidationException(
            f"1 validation error detected: Value at '{field}' failed to satisfy constraint: Member must have length "
            f"less than or equal to {LIMIT}"
        )


@before("secretsmanager", "CreateSecret")
def name_is_free(call: Call) -> None:
    """AWS says InvalidRequestException where moto says that the secret exists."""
    held = call.response.backend.secrets.get(call.get("Name"))
    if held is not None and held.is_deleted():
        raise InvalidRequestException(
            "You can't create this secret because a secret with this name is already scheduled for deletion."
        )
