"""Commits that are refused: each with the rule it breaks, and the repository as it was."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from hublet.core.hub import Hub
from hublet.repos.commits import parser as parsing
from hublet.repos.git import trees
from people import Headers
from repos.commits import (
    ARepo,
    a_repo,
    deleted_file,
    deleted_folder,
    file,
    header,
    lfs_file,
    ndjson,
)

ZERO = "0" * 64


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    repo = await a_repo(client, database, ada)
    await repo.commit(ada, file("file", "1"), file("folder/file", "2"))
    return repo


def a_file(**changes: Any) -> dict[str, Any]:
    value = {"path": "a", "content": "", "encoding": "base64"} | changes
    return {"key": "file", "value": {k: v for k, v in value.items() if v is not None}}


PATHS = [
    "../a",
    "..\\a",
    "a/../../b",
    "/a",
    "a//b",
    "a/",
    "./a",
    ".git/config",
    ".GIT/config",
    "a/.git",
    "git~1",
    ".git ",
    ".g\u200cit/x",
    "a\\b",
    "a\x00b",
    "a\x1fb",
    "x" * 256,
    "a/" * 2047 + "aaa",
    "",
]

# Each with the status and the sentence of its refusal, and what is bad about it.
BAD: list[tuple[bytes, int, str, str]] = [
    (b"", 400, "The body is empty; its first line must be the header.", "nothing"),
    (b"\n\n", 400, "The body is empty; its first line must be the header.", "blanks"),
    (b"{}\n", 400, "Line 1: Object missing required field `key`.", "no key"),
    (b"[]\n", 400, "Line 1: Expected `object`, got `array`.", "no object"),
    (b"what\n", 400, "Line 1: it is not valid JSON.", "no JSON"),
    (
        ndjson(header()) + b'\n{"key": "file", "val', 400,
        "Line 3: it is not valid JSON; a string in it does not end.", "cut off in a string",
    ),
    (
        ndjson(header()) + b'{"key": "file", "value": {"content": "QUJD', 400,
        "Line 2: it is not valid JSON; a string in it does not end.", "cut off in a content",
    ),
    (
        ndjson(header()) + b'{"key": "file"', 400,
        "Line 2: it is not valid JSON.", "cut off in a line",
    ),
    (
        ndjson(header()) + b'{"key": "file\n", "value": {}}', 400,
        "Line 2: it is not valid JSON; a string in it does not end.", "a broken string",
    ),
    (
        ndjson(file("a", "1"), header()), 400, "Line 1: the header must come first.",
        "the header late",
    ),
    (
        ndjson(file("a", "1")), 400, "Line 1: the header must come first.", "no header"
    ),
    (
        ndjson(header(), header()), 400, "Line 2: there must be one header only.", "two headers"
    ),
    (
        ndjson(header("")), 400, "Line 1: value.summary: Expected `str` of length >= 1.",
        "no summary",
    ),
    (
        ndjson(header(" ")), 400, "Line 1: summary must not be blank.", "a blank summary"
    ),
    (
        ndjson(header("a\x00b")), 400, "Line 1: text must not contain the NUL character.",
        "NUL in the summary",
    ),
    (
        ndjson(header(parentCommit="main")), 400,
        r"Line 1: value.parentCommit: Expected `str` matching regex '^[0-9a-f]{40}\\Z'.",
        "a parent that is no id",
    ),
    (
        ndjson(header(), {"key": "move", "value": {}}), 400,
        "Line 2: key must be header, file, lfsFile, deletedFile or deletedFolder.",
        "an unknown operation",
    ),
    (
        ndjson(header(), {"key": "file", "value": {}, "more": 1}), 400,
        "Line 2: value: Object missing required field `path`.", "an empty operation",
    ),
    (
        ndjson(header(), a_file(mode=7)), 400,
        "Line 2: value: Object contains unknown field `mode`.", "an unknown field",
    ),
    (
        ndjson(header(), a_file(encoding="utf-8")), 400,
        "Line 2: value.encoding: Invalid value.", "another encoding",
    ),
    (
        ndjson(header(), a_file(encoding=None)), 400,
        "Line 2: value: Object missing required field `encoding`.", "no encoding",
    ),
    (
        ndjson(header(), a_file(content=None)), 400,
        "Line 2: value: Object missing required field `content`.", "no content",
    ),
    (
        ndjson(header(), a_file(content=5)), 400,
        "Line 2: value.content: Expected `str`, got `int`.", "content that is no text",
    ),
    *[
        (
            ndjson(header(), a_file(content=content)), 400, "Line 2: content must be base64.",
            f"content {content}",
        )
        for content in ["QUJ", "QU=D", "QUJD=", "QUI=QUJD", "Q\nUJ", "QU D", "====", "ÄÄÄÄ"]
    ],
    (
        ndjson(header()) + b'{"key":"file","value":{"content":"","content":"","path":"a"}}', 400,
        "Line 2: content must be there once.", "content twice",
    ),
    (
        ndjson(header(), a_file(path="x" * 70_000)), 400,
        "Line 2: it must have at most 65536 bytes beside the content of a file.",
        "a line that is too long",
    ),
    (
        ndjson(header(), lfs_file("a", "abc")), 400,
        r"Line 2: value.oid: Expected `str` matching regex '^[0-9a-f]{64}\\Z'.",
        "a digest that is none",
    ),
    (
        ndjson(header(), lfs_file("a", ZERO, size=-1)), 400,
        "Line 2: value.size: Expected `int` >= 0.", "less than nothing",
    ),
    (
        ndjson(header(), lfs_file("a", ZERO)), 400,
        f"a: there is no content {ZERO} in this repository; upload it through Xet or LFS first.",
        "content of others",
    ),
    (
        ndjson(header(), file("a", trees.pointer_to(ZERO, 5))), 400,
        f"a: there is no content {ZERO} in this repository; upload it through Xet or LFS first.",
        "a pointer by hand to content of others",
    ),
    (
        ndjson(header(), file("a", "1"), file("a", "2")), 400,
        "a must be there once in a commit.", "a file twice",
    ),
    (
        ndjson(header(), file("file", "1"), deleted_file("file")), 400,
        "file must be there once in a commit.", "a file added and deleted",
    ),
    (
        ndjson(header(), deleted_file("file"), lfs_file("file", ZERO)), 400,
        "file must be there once in a commit.", "a file deleted and added",
    ),
    (
        ndjson(header(), deleted_file("file"), deleted_file("file")), 400,
        "file must be there once in a commit.", "a file deleted twice",
    ),
    (
        ndjson(header(), file("a", "1"), file("a/b", "2")), 400,
        "a/b cannot be a file and a folder in one commit.", "a folder behind a file",
    ),
    (
        ndjson(header(), file("a/b/c", "1"), file("a/b", "2")), 400,
        "a/b cannot be a file and a folder in one commit.", "a file behind a folder",
    ),
    (
        ndjson(header(), file("folder", "1")), 400,
        "folder cannot be added, because folder is a folder; delete that in the same commit.",
        "a file where a folder is",
    ),
    (
        ndjson(header(), file("file/deep/a", "1")), 400,
        "file/deep/a cannot be added, because file is a file; delete that in the same commit.",
        "a folder where a file is",
    ),
    (
        ndjson(header(), deleted_file("nothing")), 404,
        "There is no file or folder nothing in this revision.", "deleting what is not there",
    ),
    (
        ndjson(header(), deleted_file("file/a")), 404,
        "There is no file or folder file/a in this revision.", "deleting in a file",
    ),
    (
        ndjson(header(), deleted_folder("file")), 404,
        "There is no file or folder file in this revision.", "deleting a file as a folder",
    ),
    (
        ndjson(header(), deleted_folder("folder/none")), 404,
        "There is no file or folder folder/none in this revision.", "deleting no folder",
    ),
    (
        ndjson(header(), file("README.md", "---\ntags: [\n---\n")), 400,
        ("The metadata in README.md is not valid: It is no YAML: "
         "did not find expected node content in line 3 of README.md."),
        "a README with broken YAML",
    ),
]  # fmt: skip


async def test_a_bad_commit_is_refused_and_changes_nothing(ada: Headers, repo: ARepo) -> None:
    before = await repo.state()
    for body, status, sentence, what in BAD:
        response = await repo.send(ada, body)

        assert (response.status_code, response.json()["error"]) == (status, sentence), what
        if status == 404:
            assert response.headers["x-error-code"] == "EntryNotFound"
        assert await repo.state() == before, what


OPERATIONS = [
    *(file(path, "1") for path in PATHS),
    lfs_file("../a", ZERO),
    deleted_file("../a"),
    deleted_folder("../a/"),
    deleted_folder("/"),
    deleted_folder("a//"),
]


@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda line: ascii(line["value"]["path"])[:40]
)
async def test_a_path_that_leads_elsewhere_is_refused(
    ada: Headers, repo: ARepo, operation: dict[str, Any]
) -> None:
    before = await repo.state()

    response = await repo.send(ada, ndjson(header(), operation))

    assert response.status_code == 422
    assert "This is no path of a file: " in response.json()["error"]
    assert await repo.state() == before


@pytest.mark.parametrize(
    "revision", ["nothing", "v1", "refs%2Ftags%2Fv1", "refs%2Fpr%2F9", "1" * 40]
)
async def test_what_is_no_branch_takes_no_commit(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo, revision: str
) -> None:
    await client.post(f"{repo.path}/tag/main", headers=ada, json={"tag": "v1"})
    before = await repo.state()

    response = await repo.send(ada, ndjson(header(), file("a", "1")), revision=revision)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert await repo.state() == before


async def test_too_many_operations_are_refused(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MOST_OPERATIONS", 2)
    before = await repo.state()

    response = await repo.send(ada, ndjson(header(), *(file(f"f{n}", "1") for n in range(3))))

    assert (response.status_code, response.json()) == (
        413,
        {"error": "Line 4: a commit must have at most 2 operations."},
    )
    assert await repo.state() == before


async def test_a_file_that_is_too_large_is_refused_while_it_arrives(
    app: FastAPI, ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = repo.database.hub
    limits = replace(hub.settings.limits, file_bytes=3_000_000)
    small = Hub(settings=replace(hub.settings, limits=limits), keys=hub.keys)
    monkeypatch.setattr(repo.database, "hub", small)
    before = await repo.state()
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield ndjson(header()) + b'{"key":"file","value":{"content":"'
        for _ in range(1000):
            sent += 1
            yield b"QUJD" * 50_000

    response = await repo.client.post(f"{repo.path}/commit/main", headers=ada, content=body())

    assert (response.status_code, response.json()) == (
        413,
        {"error": "Line 2: a file must have at most 3000000 bytes."},
    )
    assert await repo.state() == before
    incoming = hub.settings.database.data_dir / "blobs" / "incoming"
    assert list(incoming.iterdir()) == []


async def test_half_a_body_leaves_nothing_behind(ada: Headers, repo: ARepo) -> None:
    before = await repo.state()
    whole = json.dumps(file("big", b"x" * 12_000_000)).encode()

    response = await repo.send(ada, ndjson(header(), file("a", "1")) + whole[:-100])

    assert response.status_code == 400
    assert await repo.state() == before
    data_dir = repo.database.hub.settings.database.data_dir
    assert list((data_dir / "blobs" / "incoming").iterdir()) == []
    assert list((data_dir / "repos").rglob("tmp_*")) == []
