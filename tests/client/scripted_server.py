"""A server that answers as a test tells it to, request by request."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedResponse:
    """An answer; without a length its end is the end of the connection."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    # Promise this many bytes, whatever comes.
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    method: str
    path: str
    # Names in lower case.
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ServerScript:
    answers: list[ScriptedResponse]
    address: str = ""
    asked: list[RecordedRequest] = field(default_factory=list)


@contextmanager
def scripted_server(*answers: ScriptedResponse) -> Iterator[ServerScript]:
    """Give these answers one after the other; who asks further gets none."""
    script = ServerScript(list(answers))
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(script)) as server:
        server.daemon_threads = True
        script.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()


def _handler(script: ServerScript) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append(
                RecordedRequest(method=self.command, path=self.path, headers=headers, body=body)
            )
            if not script.answers:
                return
            said = script.answers.pop(0)
            self.send_response(said.status)
            self.send_header("Content-Type", said.kind)
            for name, value in said.headers.items():
                self.send_header(name, value)
            if said.length is not None:
                self.send_header("Content-Length", str(said.length))
            self.end_headers()
            self.wfile.write(said.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's word
            """Stay silent."""

    return Handler
