"""The content of the loads: made up as it is sent, another one each time, and whole."""

import base64
import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import nginx
from benchmarks.content import (
    Account,
    Bytes,
    commit_body,
    inline_body,
    new_bytes,
    pointer_body,
)
from benchmarks.figures import Spoiled
from benchmarks.hubs import ServedHub
from benchmarks.load import CONNECTION, NUMBER, LoadPlan, requests_of
from benchmarks.processes import fetch, running
from benchmarks.subjects import downloads
from benchmarks.workbench import workbench

BLOCK = b"abcdefghi"


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(3, id="less than a block"),
        pytest.param(9, id="a block"),
        pytest.param(18, id="two blocks"),
        pytest.param(19, id="two blocks and a byte"),
        pytest.param(20, id="two blocks and two bytes"),
    ],
)
def test_bytes_come_in_pieces_plain_and_encoded(size: int) -> None:
    content = Bytes(size=size, block=BLOCK)
    whole = (BLOCK * 3)[:size]

    assert b"".join(content.pieces()) == whole
    assert b"".join(content.encoded()) == base64.b64encode(whole)
    assert content.encoded_size == len(base64.b64encode(whole))


def test_the_digest_is_that_of_the_whole() -> None:
    digest = "19cc02f26df43cc571bc9ed7b0c4d29224a3ec229529221725ef76d021c8326f"
    assert Bytes(size=9, block=BLOCK).sha256() == digest


def test_new_bytes_are_others_each_time() -> None:
    assert new_bytes(100).block != new_bytes(100).block


def test_a_file_in_a_commit_is_spelled_as_the_public_client_does() -> None:
    body = inline_body("a/large.bin", Bytes(size=20, block=BLOCK))
    text = b"".join(body.pieces)

    assert body.length == len(text)
    assert [json.loads(line) for line in text.splitlines()] == [
        {"key": "header", "value": {"summary": "Add a/large.bin", "description": ""}},
        {
            "key": "file",
            "value": {
                "content": base64.b64encode((BLOCK * 3)[:20]).decode(),
                "path": "a/large.bin",
                "encoding": "base64",
            },
        },
    ]


def test_a_large_file_is_named_by_its_digest() -> None:
    lines = pointer_body("large.bin", sha256="ab" * 32, size=7).splitlines()

    value = {"path": "large.bin", "algo": "sha256", "oid": "ab" * 32, "size": 7}
    assert json.loads(lines[1]) == {"key": "lfsFile", "value": value}


def _plan(request: bytes, *, numbered: bool) -> LoadPlan:
    return LoadPlan(
        port=1, request=request, connections=1, seconds=1, numbered=numbered, first_number=7
    )


def test_numbered_requests_differ_and_keep_their_length() -> None:
    body = commit_body({"counter.txt": b"123456"}).replace(b"MTIzNDU2", NUMBER.encode())
    request = f"/clients-{CONNECTION}\n".encode() + body
    sent = list(itertools.islice(requests_of(_plan(request, numbered=True), 3), 2))

    assert {len(each) for each in sent} == {len(request)}
    assert [each.splitlines()[0] for each in sent] == [b"/clients-00000003"] * 2
    files = [json.loads(each.splitlines()[2])["value"]["content"] for each in sent]
    assert files == ["00000007", "00000008"]
    assert len({base64.b64decode(each, validate=True) for each in files}) == 2


def test_other_requests_are_sent_as_they_are() -> None:
    requests = requests_of(_plan(NUMBER.encode(), numbered=False), 3)

    assert [next(requests), next(requests)] == [NUMBER.encode()] * 2


class _Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(409)
        self.end_headers()
        self.wfile.write(b"main has moved on")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def _refusing() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_an_answer_that_is_not_good_spoils_the_measurement(tmp_path: Path) -> None:
    with _refusing() as port, running(["sleep", "60"], output=tmp_path / "log") as child:
        account = Account(hub=ServedHub(child=child, port=port), token="hf_x")

        with pytest.raises(Spoiled, match="commit/main answered 409: b'main has moved on'"):
            account.commit("engine", commit_body({"a": b"1"}))


def test_without_nginx_a_download_is_held_against_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "find_nginx", lambda: None)
    with workbench(seconds=1, rounds=1) as bench, pytest.raises(Spoiled, match="not installed"):
        next(downloads.measure(bench))


def test_nginx_serves_the_file_it_is_given(tmp_path: Path) -> None:
    program = nginx.find_nginx()
    if program is None:
        pytest.skip("nginx is not installed")
    (tmp_path / "file").write_bytes(BLOCK)

    with nginx.serving_with_nginx(program, tmp_path / "n", tmp_path / "file", core=None) as server:
        assert fetch(server.port, "/file") == (200, BLOCK)


@pytest.mark.parametrize(("flags", "share"), [([], 1.0), (["--quick"], 0.01)])
def test_a_quick_run_makes_a_hundredth_of_the_content(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], share: float
) -> None:
    shares: list[float] = []
    monkeypatch.setattr(command, "report", lambda bench, _names, into: shares.append(bench.share))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    command.main(["cli", *flags])

    assert shares == [share]
