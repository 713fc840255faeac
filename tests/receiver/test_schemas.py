"""The payload reads like the public library's, and keeps what that one drops."""

from typing import Any

import huggingface_hub
import pytest
from pydantic import ValidationError

from hublet import receiver
from hublet.receiver import WebhookPayload
from receiver.deliveries import PAYLOAD

DISCUSSION = {
    "id": "6af9736329ea2002586654ac",
    "num": 2,
    "title": "Add coal",
    "url": {"web": "https://hub.example.com/ada/engine/discussions/2"},
    "status": "merged",
    "author": {"id": "6af97129bf9427882ee36301"},
    "isPullRequest": True,
    "pinned": False,
    "changes": {"base": "refs/heads/main", "mergeCommitId": "b2dcde6e"},
}
COMMENT = {
    "id": "6af9736529ea2002586654b2",
    "author": {"id": "6af973580ae3c85584efc477"},
    "hidden": False,
    "url": {"web": "https://hub.example.com/ada/engine/discussions/2#6af9736529ea2002586654b2"},
    "content": "Have you tried coal?",
}
MOVED_TO = {"name": "analytical/engine", "owner": {"id": "6af9735afd799f38f13f6117"}}


def read(**parts: Any) -> WebhookPayload:
    return WebhookPayload.model_validate(PAYLOAD | parts)


def in_repo(**changes: Any) -> WebhookPayload:
    return read(repo=PAYLOAD["repo"] | changes)


def test_everything_the_public_library_reads_is_read_alike() -> None:
    sent = PAYLOAD | {"discussion": DISCUSSION, "comment": COMMENT, "movedTo": MOVED_TO}
    # Without pydantic it would be a stand-in, which is what a type checker sees.
    library: Any = huggingface_hub.WebhookPayload
    theirs = library.model_validate(sent).model_dump()
    ours = WebhookPayload.model_validate(sent).model_dump()

    # The one thing that it looks for under a name that no hub sends.
    theirs["repo"]["head_sha"] = PAYLOAD["repo"]["headSha"]
    assert ours == theirs | {"updatedFiles": None, "updatedConfig": None, "updatedImages": None}


def test_every_name_of_the_public_library_is_there() -> None:
    names = {name for name in huggingface_hub.__all__ if name.startswith(("Webhook", "webhook"))}
    # These belong to the management of webhooks.
    names -= {"WebhookInfo", "WebhookWatchedItem"}

    assert names - set(receiver.__all__) == set()
    assert all(hasattr(receiver, name) for name in receiver.__all__)


@pytest.mark.parametrize("name", ["headSha", "head_sha"])
def test_the_head_is_found_under_both_names(name: str) -> None:
    repo = {key: value for key, value in PAYLOAD["repo"].items() if key != "headSha"}

    assert read(repo=repo | {name: "abc"}).repo.head_sha == "abc"
    assert read(repo=repo).repo.head_sha is None


def test_it_is_written_as_it_came() -> None:
    dumped = read().model_dump(by_alias=True, exclude_unset=True)

    assert dumped == PAYLOAD


@pytest.mark.parametrize(
    "repo_type", ["model", "dataset", "space", "bucket", "kernel", "container", "balloon"]
)
def test_every_type_of_repo_is_taken(repo_type: str) -> None:
    assert in_repo(type=repo_type).repo.type == repo_type


def test_actions_and_scopes_of_tomorrow_are_taken() -> None:
    payload = read(
        event={"action": "explode", "scope": "repo.kitchen", "by": "ada"},
        webhook={"id": "w", "version": 4},
    )

    assert (payload.event.action, payload.event.scope) == ("explode", "repo.kitchen")
    assert payload.webhook.version == 4
    assert payload.event.model_extra == {"by": "ada"}


def test_unknown_fields_are_kept_and_reachable() -> None:
    payload = read(weather={"rain": True}, repo=PAYLOAD["repo"] | {"colour": "red"})

    assert payload.weather == {"rain": True}  # type: ignore[attr-defined]  # that is the point
    assert payload.repo.colour == "red"  # type: ignore[attr-defined]
    assert payload.model_dump()["weather"] == {"rain": True}


def test_changed_files_and_settings_are_read() -> None:
    payload = read(
        updatedFiles=[
            {"path": "2026/scan.png", "action": "add", "xetHash": "9f86", "size": 51200},
            {"path": "2025/scan.png", "action": "delete"},
        ],
        updatedConfig={"private": True},
    )

    assert payload.updatedFiles is not None
    assert [(each.path, each.action, each.size) for each in payload.updatedFiles] == [
        ("2026/scan.png", "add", 51200),
        ("2025/scan.png", "delete", None),
    ]
    assert payload.updatedConfig == {"private": True}


@pytest.mark.parametrize("part", ["event", "repo", "webhook"])
def test_what_every_payload_has_must_be_there(part: str) -> None:
    with pytest.raises(ValidationError):
        WebhookPayload.model_validate({k: v for k, v in PAYLOAD.items() if k != part})
