"""Which events trigger webhooks, whom they concern, and what is sent."""

import json
from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import WebhookPayload

from hublet.core.outbox import Event
from hublet.events import (
    CommentCreated,
    CommentSnapshot,
    CommentUpdated,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoCreated,
    RepoDeleted,
    RepoFilesUpdated,
    RepoImagesUpdated,
    RepoMoved,
    RepoSnapshot,
    ThreadCreated,
    ThreadDeleted,
    ThreadSnapshot,
    ThreadUpdated,
    UpdatedFile,
    UpdatedImage,
    UpdatedRef,
)
from hublet.webhooks.triggers.payload import TRIGGER_EVENTS, render_body, trigger_of

HUB = "https://hub.test"
REPO, OWNER, ACTOR, WEBHOOK = "a" * 24, "b" * 24, "c" * 24, "d" * 24
MODEL = RepoSnapshot(
    id=REPO,
    type="model",
    name="ada/engine",
    owner_id=OWNER,
    private=False,
    head_sha="1" * 40,
    tags=("region:us",),
)
BUCKET = replace(MODEL, type="bucket", head_sha=None)
CONTAINER = replace(MODEL, type="container", head_sha=None)
OLD_DIGEST, NEW_DIGEST = f"sha256:{'4' * 64}", f"sha256:{'5' * 64}"
THREAD = ThreadSnapshot(
    id="e" * 24,
    kind="discussion",
    title="Cogs",
    author_id=ACTOR,
    repo=MODEL,
    number=7,
    status="open",
)
PULL = replace(
    THREAD, is_pull_request=True, status="merged", base="refs/heads/main", merge_commit_id="2" * 40
)
COMMENT = CommentSnapshot(id="f" * 24, author_id=ACTOR, content="Turn them.")
HIDDEN = replace(COMMENT, hidden=True)

SHOWN_REPO = {
    "type": "model",
    "name": "ada/engine",
    "id": REPO,
    "private": False,
    "url": {"web": f"{HUB}/ada/engine", "api": f"{HUB}/api/models/ada/engine"},
    "owner": {"id": OWNER},
    "tags": ["region:us"],
}
WITH_HEAD = SHOWN_REPO | {"headSha": "1" * 40}
SHOWN_BUCKET = SHOWN_REPO | {
    "type": "bucket",
    "url": {"web": f"{HUB}/buckets/ada/engine", "api": f"{HUB}/api/buckets/ada/engine"},
}
SHOWN_CONTAINER = SHOWN_REPO | {
    "type": "container",
    "url": {"web": f"{HUB}/containers/ada/engine", "api": f"{HUB}/api/containers/ada/engine"},
}
SHOWN_THREAD = {
    "id": "e" * 24,
    "num": 7,
    "title": "Cogs",
    "url": {
        "web": f"{HUB}/ada/engine/discussions/7",
        "api": f"{HUB}/api/models/ada/engine/discussions/7",
    },
    "status": "open",
    "author": {"id": ACTOR},
    "isPullRequest": False,
    "pinned": False,
}
SHOWN_PULL = SHOWN_THREAD | {
    "status": "merged",
    "isPullRequest": True,
    "changes": {"base": "refs/heads/main", "mergeCommitId": "2" * 40},
}
SHOWN_COMMENT = {
    "id": "f" * 24,
    "author": {"id": ACTOR},
    "hidden": False,
    "url": {"web": f"{HUB}/ada/engine/discussions/7#{'f' * 24}"},
    "content": "Turn them.",
}
SHOWN_HIDDEN = {key: value for key, value in SHOWN_COMMENT.items() if key != "content"} | {
    "hidden": True
}

FACTS: list[Any] = [
    pytest.param(
        RepoCreated(repo=MODEL, actor_id=ACTOR),
        ("repo", "repo", "create"),
        {"repo": WITH_HEAD},
        id="a repository is created",
    ),
    pytest.param(
        RepoDeleted(repo=MODEL, actor_id=ACTOR),
        ("repo", "repo", "delete"),
        {"repo": WITH_HEAD},
        id="a repository is deleted",
    ),
    pytest.param(
        RepoMoved(repo=MODEL, moved_to_name="ada/mill", moved_to_owner_id=OWNER, actor_id=ACTOR),
        ("repo", "repo", "move"),
        {"repo": WITH_HEAD, "movedTo": {"name": "ada/mill", "owner": {"id": OWNER}}},
        id="a repository gets another name",
    ),
    pytest.param(
        RepoConfigUpdated(repo=MODEL, updated_config={"private": True}, actor_id=ACTOR),
        ("repo", "repo.config", "update"),
        {"repo": WITH_HEAD, "updatedConfig": {"private": True}},
        id="settings change",
    ),
    pytest.param(
        RepoContentUpdated(
            repo=MODEL,
            updated_refs=(UpdatedRef(ref="refs/heads/main", old_sha=None, new_sha="1" * 40),),
            actor_id=ACTOR,
        ),
        ("repo", "repo.content", "update"),
        {
            "repo": WITH_HEAD,
            "updatedRefs": [{"ref": "refs/heads/main", "oldSha": None, "newSha": "1" * 40}],
        },
        id="a branch moves",
    ),
    pytest.param(
        RepoFilesUpdated(
            repo=BUCKET,
            updated_files=(
                UpdatedFile(path="a.bin", action="add", sha256="2" * 64, xet_hash="3" * 64, size=5),
                UpdatedFile(path="b.bin", action="delete"),
            ),
            actor_id=ACTOR,
        ),
        ("repo", "repo.content", "update"),
        {
            "repo": SHOWN_BUCKET,
            "updatedFiles": [
                {"path": "a.bin", "action": "add", "xetHash": "3" * 64, "size": 5},
                {"path": "b.bin", "action": "delete"},
            ],
        },
        id="files of a bucket change",
    ),
    pytest.param(
        RepoImagesUpdated(
            repo=CONTAINER,
            updated_images=(
                UpdatedImage(path="", tag="1.0", old_digest=None, new_digest=NEW_DIGEST),
                UpdatedImage(path="gpu", tag="1.0", old_digest=OLD_DIGEST, new_digest=None),
                UpdatedImage(path="", tag=None, old_digest=OLD_DIGEST, new_digest=None),
            ),
            actor_id=ACTOR,
        ),
        ("repo", "repo.content", "update"),
        {
            "repo": SHOWN_CONTAINER,
            "updatedRefs": [
                {"ref": "refs/tags/1.0", "oldSha": None, "newSha": NEW_DIGEST},
                {"ref": "refs/tags/gpu/1.0", "oldSha": OLD_DIGEST, "newSha": None},
            ],
            "updatedImages": [
                {"image": "ada/engine", "tag": "1.0", "digest": NEW_DIGEST, "oldDigest": None},
                {"image": "ada/engine/gpu", "tag": "1.0", "digest": None, "oldDigest": OLD_DIGEST},
                {"image": "ada/engine", "tag": None, "digest": None, "oldDigest": OLD_DIGEST},
            ],
        },
        id="tags of a container are pushed and deleted",
    ),
    pytest.param(
        ThreadCreated(thread=THREAD, comment=COMMENT, actor_id=ACTOR),
        ("discussion", "discussion", "create"),
        {"repo": SHOWN_REPO, "discussion": SHOWN_THREAD, "comment": SHOWN_COMMENT},
        id="a discussion is opened",
    ),
    pytest.param(
        ThreadUpdated(thread=PULL, changed=("status",), actor_id=ACTOR),
        ("discussion", "discussion", "update"),
        {"repo": SHOWN_REPO, "discussion": SHOWN_PULL},
        id="a pull request is merged",
    ),
    pytest.param(
        ThreadDeleted(thread=THREAD, actor_id=ACTOR),
        ("discussion", "discussion", "delete"),
        {"repo": SHOWN_REPO, "discussion": SHOWN_THREAD},
        id="a discussion is deleted",
    ),
    pytest.param(
        CommentCreated(thread=THREAD, comment=COMMENT, actor_id=ACTOR),
        ("discussion", "discussion.comment", "create"),
        {"repo": SHOWN_REPO, "discussion": SHOWN_THREAD, "comment": SHOWN_COMMENT},
        id="somebody comments",
    ),
    pytest.param(
        CommentUpdated(thread=THREAD, comment=HIDDEN, actor_id=ACTOR),
        ("discussion", "discussion.comment", "update"),
        {"repo": SHOWN_REPO, "discussion": SHOWN_THREAD, "comment": SHOWN_HIDDEN},
        id="a comment is hidden",
    ),
]


@pytest.mark.parametrize(("event", "kind", "parts"), FACTS)
def test_an_event_is_sent_as_the_public_clients_read_it(
    event: Event, kind: tuple[str, str, str], parts: dict[str, Any]
) -> None:
    trigger = trigger_of(event, HUB)

    assert trigger is not None
    assert (trigger.domain, trigger.scope, trigger.action) == kind
    body = render_body(trigger.payload, WEBHOOK)
    assert json.loads(body) == parts | {
        "event": {"scope": kind[1], "action": kind[2]},
        "webhook": {"id": WEBHOOK, "version": 3},
    }
    if parts["repo"]["type"] == "model":
        WebhookPayload.model_validate_json(body)


@pytest.mark.parametrize(("event", "kind", "parts"), FACTS)
def test_it_concerns_who_watches_the_repository_or_its_owner(
    event: Event, kind: tuple[str, str, str], parts: dict[str, Any]
) -> None:
    trigger = trigger_of(event, HUB)

    assert trigger is not None
    assert trigger.targets == (REPO, OWNER)


def test_every_triggering_event_is_in_the_table() -> None:
    assert {type(case.values[0]) for case in FACTS} == set(TRIGGER_EVENTS)


def test_a_move_to_another_owner_concerns_both_and_is_judged_where_it_is_now() -> None:
    grouped = replace(MODEL, private=True, resource_group_id="9" * 24)
    trigger = trigger_of(
        RepoMoved(
            repo=grouped, moved_to_name="grace/engine", moved_to_owner_id=ACTOR, actor_id=ACTOR
        ),
        HUB,
    )

    assert trigger is not None
    assert trigger.targets == (REPO, OWNER, ACTOR)
    assert trigger.repo == replace(
        grouped, name="grace/engine", owner_id=ACTOR, resource_group_id=None
    )


@pytest.mark.parametrize("kind", ["paper", "post", "blog"])
def test_a_thread_without_a_repository_triggers_nothing(kind: str) -> None:
    thread = ThreadSnapshot(id="e" * 24, kind=kind, title="Cogs")

    assert trigger_of(ThreadDeleted(thread=thread, actor_id=ACTOR), HUB) is None


def test_the_commits_of_a_pull_request_trigger_only_as_content() -> None:
    noted = ThreadUpdated(thread=PULL, changed=("content",), actor_id=ACTOR)

    assert trigger_of(noted, HUB) is None
