"""Secrets: at most 64 KiB each, and a name waiting for its deletion cannot be taken again."""

from moto.secretsmanager.exceptions import InvalidRequestException, ValidationException

from emulator.hooks import Call, before

#: Secrets Manager's limit on one value, in bytes.
LIMIT = 65536


@before("secretsmanager", "CreateSecret", "PutSecretValue", "UpdateSecret")
def small_enough(call: Call) -> None:
    """Counts the bytes of the text, or of the binary value as it is sent (base64)."""
    text, binary = call.get("SecretString"), call.get("SecretBinary")
    size = len(text.encode()) if text else 0
    if binary:
        size = len(binary) * 3 // 4
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
