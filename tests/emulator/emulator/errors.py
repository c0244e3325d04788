"""Writes an AWS error the way the protocol of the request wants it.

Only for errors that arise outside moto (faults, unknown regions and actions); rules raise moto's own errors.
"""

import json
import uuid
from xml.sax.saxutils import escape

Response = tuple[int, dict[str, str], bytes]


def render(protocol: str, status: int, code: str, message: str, fields: dict[str, str] | None = None) -> Response:
    """Status, headers and body of an error; `protocol` as in `request.AwsRequest`, `fields` for REST with JSON only."""
    request_id = str(uuid.uuid4())
    code_text, text = escape(code), escape(message)
    if protocol == "json":
        body = json.dumps({"__type": code, "message": message})
        return status, {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": code}, body.encode()
    if protocol == "rest-json":
        body = json.dumps({"ErrorCode": code, "Message": message, **(fields or {})})
        return status, {"Content-Type": "application/json", "x-amzn-ErrorType": code}, body.encode()
    if protocol == "ec2":
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            f"<Response><Errors><Error><Code>{code_text}</Code><Message>{text}</Message></Error></Errors>"
            f"<RequestID>{request_id}</RequestID></Response>"
        )
    elif protocol == "rest":
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            f"<Error><Code>{code_text}</Code><Message>{text}</Message><RequestId>{request_id}</RequestId></Error>"
        )
    else:
        side = "Sender" if status < 500 else "Receiver"
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            f"<ErrorResponse><Error><Type>{side}</Type><Code>{code_text}</Code><Message>{text}</Message></Error>"
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return status, {"Content-Type": "text/xml;charset=UTF-8"}, body.encode()
