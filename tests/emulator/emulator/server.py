"""The HTTP server: hands AWS requests to moto, one at a time, and control requests to `control.py`.

Connections are kept alive. Faults strike here, and here every AWS call is logged. One lock is held while moto
works, so a rule sees a world that nobody else changes; hangs and lost replies happen outside that lock.
"""

import io
import re
import socket
import sys
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from emulator import calls, clock, control, faults
from emulator.errors import Response, render
from emulator.request import AwsRequest, parse
from emulator.rules import enforcement
from emulator.rules import errors as error_rules

#: How long a hanging call is held when the fault does not say.
_HANG_SECONDS = 3600.0
_ERROR_CODE = re.compile(rb"<Code>([^<]+)</Code>")
_JSON_CODE = re.compile(rb'"(?:__type|ErrorCode)": *"(?:[^"#]*#)?([^"]+)"')

_moto = DomainDispatcherApplication(create_backend_app)


class Handler(BaseHTTPRequestHandler):
    """One connection; a thread each."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        split = urlsplit(self.path)
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        if split.path.startswith("/_emulator/"):
            self._send(control.answer(self.command, split.path, split.query, body))
            return
        request = parse(self.command, split.path, split.query, headers, body)
        fault = faults.choose(request)
        if fault is not None and fault.kind == "hang":
            calls.record(request, 0, None, fault.kind)
            time.sleep(_HANG_SECONDS if fault.seconds is None else fault.seconds)
            self._drop()
        elif fault is not None and fault.kind == "lost-reply":
            status, _, content = self._carry_out(request, split.path, split.query, headers, body)
            calls.record(request, status, _code(status, content), fault.kind)
            self._drop()
        elif fault is not None:
            response = fault.answer(request)
            calls.record(request, response[0], _code(response[0], response[2]), fault.kind)
            self._send(response)
        else:
            response = self._carry_out(request, split.path, split.query, headers, body)
            calls.record(request, response[0], _code(response[0], response[2]))
            self._send(response)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _answer  # noqa: N815

    def _carry_out(
        self, request: AwsRequest, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> Response:
        refused = error_rules.unanswerable(request)
        if refused is not None:
            return refused
        environ = self._environ(path, query, headers, body)
        with clock.world_lock:
            clock.tick()
            try:
                return enforcement.refusal(request, query) or _run(environ)
            except Exception:  # moto must never take the connection with it
                traceback.print_exc(file=sys.stderr)
                return render(request.protocol, 500, "InternalError", "An internal error has occurred")

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _environ(self, path: str, query: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        host, _, port = headers.get("host", "localhost").partition(":")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "RAW_URI": self.path,
            "REQUEST_URI": self.path,
            "SERVER_NAME": host,
            "SERVER_PORT": port or "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.client_address[0],
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in headers.items():
            if name == "content-type":
                environ["CONTENT_TYPE"] = value
            elif name not in ("content-length", "transfer-encoding"):
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        return environ

    def _send(self, response: Response) -> None:
        status, headers, body = response
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "status"):
                self.send_header(name, value)
        if not any(name.lower() == "date" for name in headers):
            self.send_header("Date", self.date_time_string())
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self._headers_buffer.append(b"\r\n")
        if self.command != "HEAD":
            self._headers_buffer.append(body)
        self.flush_headers()

    def _drop(self) -> None:
        """Closes the connection without an answer, as a broken network does."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the call log says more."""


class Server(ThreadingHTTPServer):
    """Listens, one thread per connection; threads never keep the process alive."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are not errors; anything else is printed."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            traceback.print_exc(file=sys.stderr)


def _run(environ: dict[str, Any]) -> Response:
    """Runs moto's application on one request."""
    answered: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        answered[:] = [int(status.split(" ", 1)[0]), headers]
        return lambda data: None

    result = _moto(environ, start_response)
    try:
        body = b"".join(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    return answered[0], dict(answered[1]), body


def _code(status: int, body: bytes) -> str | None:
    if status < 400:
        return None
    found = _ERROR_CODE.search(body) or _JSON_CODE.search(body)
    return found.group(1).decode() if found else None
