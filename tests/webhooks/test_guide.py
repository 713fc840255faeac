"""The guide shows what the hub really sends, and what it tells receivers to do works."""

import importlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http.server import HTTPServer
from pathlib import Path
from types import ModuleType

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.outbox import Event
from hublet.core.outgoing.records import FailureReason
from hublet.events import (
    CommentCreated,
    CommentSnapshot,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoFilesUpdated,
    RepoImagesUpdated,
    RepoMoved,
    RepoSnapshot,
    ThreadSnapshot,
    ThreadUpdated,
    UpdatedFile,
    UpdatedImage,
    UpdatedRef,
)
from hublet.webhooks.delivery.backoff import SCHEDULE, SECOND
from hublet.webhooks.delivery.signing import headers_of, key_of
from hublet.webhooks.records import GivenUpReason, UnsentReason
from hublet.webhooks.schemas import MAX_SECRET, MAX_WATCHED
from hublet.webhooks.triggers.payload import render_body, trigger_of

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
WEBHOOK = "6af9736029ea2002586654a6"
ADA, GRACE = "6af973580ae3c85584efc477", "6af97129bf9427882ee36301"

MODEL = RepoSnapshot(
    id="6af9735f29ea2002586654a4",
    type="model",
    name="ada/engine",
    owner_id=ADA,
    private=False,
    head_sha="359d420fdc59764d9148b9191bef8f025f9cecd2",
    tags=("license:mit",),
)
BUCKET = replace(
    MODEL, id="6af9735f29ea2002586654a5", type="bucket", name="ada/store", head_sha=None, tags=()
)
CONTAINER = replace(BUCKET, id="6af9735f29ea2002586654a7", type="container", name="ada/tool")
DATASET = replace(
    MODEL, id="6af9735f29ea2002586654a6", type="dataset", name="ada/tables", private=True, tags=()
)
DISCUSSION = ThreadSnapshot(
    id="6af9736329ea2002586654ad",
    kind="discussion",
    title="It does not turn",
    author_id=GRACE,
    repo=MODEL,
    number=1,
    status="open",
)
PULL_REQUEST = replace(
    DISCUSSION,
    id="6af9736329ea2002586654ac",
    title="Add coal",
    number=2,
    status="merged",
    is_pull_request=True,
    base="refs/heads/main",
    merge_commit_id="b2dcde6e4b0867a497da18605b241ce10127c692",
)

# In the order of the page.
EVENTS: list[Event] = [
    RepoMoved(
        repo=MODEL,
        moved_to_name="analytical/engine",
        moved_to_owner_id="6af9735afd799f38f13f6117",
        actor_id=ADA,
    ),
    RepoContentUpdated(
        repo=MODEL,
        updated_refs=(
            UpdatedRef(
                ref="refs/heads/main",
                old_sha="b0770fa0bf7da954e903d44b01cb4256097b1b8c",
                new_sha="359d420fdc59764d9148b9191bef8f025f9cecd2",
            ),
        ),
        actor_id=ADA,
    ),
    RepoFilesUpdated(
        repo=BUCKET,
        updated_files=(
            UpdatedFile(
                path="2026/scan.png",
                action="add",
                xet_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                size=51200,
            ),
            UpdatedFile(path="2025/scan.png", action="delete"),
        ),
        actor_id=ADA,
    ),
    RepoImagesUpdated(
        repo=CONTAINER,
        updated_images=(
            UpdatedImage(
                path="",
                tag="1.0",
                old_digest=None,
                new_digest="sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
        ),
        actor_id=ADA,
    ),
    RepoConfigUpdated(
        repo=DATASET, updated_config={"private": True, "visibility": "private"}, actor_id=ADA
    ),
    ThreadUpdated(thread=PULL_REQUEST, changed=("status",), actor_id=ADA),
    CommentCreated(
        thread=DISCUSSION,
        comment=CommentSnapshot(
            id="6af9736529ea2002586654b2", author_id=ADA, content="Have you tried coal?"
        ),
        actor_id=ADA,
    ),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("example", "event"),
    [
        pytest.param(example, event, id=event.kind)
        for example, event in zip(blocks("json"), EVENTS, strict=True)
    ],
)
def test_an_example_is_what_is_sent_to_the_letter(example: str, event: Event) -> None:
    trigger = trigger_of(event, "https://hub.example.com")

    assert trigger is not None
    compact = json.dumps(json.loads(example), separators=(",", ":")).encode()
    assert compact == render_body(trigger.payload, WEBHOOK)
    assert f"\n### {trigger.scope}\n" in PAGE.partition(example)[0]


def test_every_reason_is_explained_once() -> None:
    table = PAGE.partition("| reason | of |")[2].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()]
    explained = [name for cell in first_cells for name in re.findall("`([a-z-]+)`", cell)]
    ours = [*UnsentReason, *GivenUpReason, *FailureReason, "secret-unreadable", "internal-error"]
    ours += ["job-refused", "job-failed"]

    assert sorted(explained) == sorted(ours)


def test_the_waits_and_limits_are_those_of_the_hub() -> None:
    units = {"s": 1, "min": 60, "h": 3600}
    [waits] = re.findall(r"tried again after (.*?), each", PAGE.replace("\n", " "))
    settings = Settings().webhooks

    assert [
        int(number) * units[unit] * SECOND for number, unit in re.findall(r"(\d+) (\w+)", waits)
    ] == list(SCHEDULE[1:])
    for row in (
        f"| {settings.per_owner} (`webhooks.per_owner`) |",
        "| no limit; with `webhooks.daily_triggers` ",
        f"| {settings.deadline_seconds:.0f} seconds (`webhooks.deadline_seconds`) |",
        f", {settings.concurrency} in a worker (`webhooks.concurrency`) |",
        f"| {settings.retention_days} days (`webhooks.retention_days`) |",
        f"| watched items of a webhook | {MAX_WATCHED} |",
        f"| 2048 and {MAX_SECRET} characters;",
    ):
        assert row in PAGE


@pytest.fixture
def snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the page, saved as it says and imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for text in blocks("python"):
        (tmp_path / text.split()[1]).write_text(text, encoding="utf-8")
    names = [path.stem for path in tmp_path.glob("*.py")]
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


BODY = render_body(
    b'{"event":{"action":"update","scope":"ping"},"repo":{"name":"ada/engine"}}', WEBHOOK
)
WHSEC = "whsec_c3RlYW0gYW5kIGNvYWwsIGNvYWwgYW5kIHN0ZWFt"


# The headers of an attempt, made when the test runs: one that is old is not genuine.
Attempt = Callable[[], dict[str, str]]


def sent(*secrets: str, seconds_ago: int = 0) -> dict[str, str]:
    """Return the headers of an attempt that these secrets sign, in lower case."""
    headers = headers_of(
        BODY,
        delivery_id="6af9736529ea2002586654b5",
        timestamp=int(datetime.now(UTC).timestamp()) - seconds_ago,
        attempt=1,
        secret=secrets[0],
        keys=[key_of(secret) for secret in secrets],
    )
    return {name.lower(): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("secret", "attempt", "body", "genuine"),
    [
        pytest.param(
            "coal & steam", partial(sent, "coal & steam"), BODY, True, id="a secret as it is"
        ),
        pytest.param(WHSEC, partial(sent, WHSEC), BODY, True, id="a secret with whsec_"),
        pytest.param(
            "old", partial(sent, "new", "old"), BODY, True, id="the secret before the last change"
        ),
        pytest.param(
            "new", partial(sent, "new", "old"), BODY, True, id="the secret after the last change"
        ),
        pytest.param("soot", partial(sent, "coal"), BODY, False, id="another secret"),
        pytest.param(
            "coal", partial(sent, "coal"), BODY + b" ", False, id="a body that was changed"
        ),
        pytest.param(
            "coal", partial(sent, "coal", seconds_ago=400), BODY, False, id="an old attempt"
        ),
    ],
)
def test_the_documented_check_tells_what_is_genuine(
    snippets: dict[str, ModuleType], secret: str, attempt: Attempt, body: bytes, *, genuine: bool
) -> None:
    assert snippets["verify"].is_genuine(secret, attempt(), body) is genuine


def test_the_documented_receiver_takes_only_what_is_genuine(
    snippets: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    unsigned = {"webhook-id": "6af9736529ea2002586654b5"}
    with HTTPServer(("127.0.0.1", 0), snippets["receive"].Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        answers = [
            httpx2.post(f"http://127.0.0.1:{server.server_port}/", content=BODY, headers=headers)
            for headers in (sent(snippets["receive"].SECRET), sent("soot"), unsigned)
        ]
        server.shutdown()
        thread.join()

    assert [answer.status_code for answer in answers] == [200, 403, 403]
    assert capsys.readouterr().out == (
        "{'action': 'update', 'scope': 'ping'} ada/engine 6af9736529ea2002586654b5\n"
    )
