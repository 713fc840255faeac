"""Which facts concern webhooks, whom, and as what: pure."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hublet.core.outbox import Event
from hublet.events import (
    CommentCreated,
    CommentUpdated,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoCreated,
    RepoDeleted,
    RepoFilesUpdated,
    RepoMoved,
    RepoSnapshot,
    ThreadCreated,
    ThreadDeleted,
    ThreadUpdated,
)
from hublet.webhooks.records import Domain
from hublet.webhooks.triggers import payload
from hublet.webhooks.triggers.records import Trigger


def trigger_of(event: Event, base_url: str) -> Trigger | None:
    """Return what webhooks make of a fact; None when it concerns none."""
    return _KINDS[type(event)](event, base_url)


def _about_repo(
    repo: RepoSnapshot, base_url: str, *, scope: str, action: str, **parts: Any
) -> Trigger:
    shown = {"repo": payload.render_repo(repo, base_url), **parts}
    return Trigger(
        domain=Domain.repo,
        scope=scope,
        action=action,
        repo=repo,
        targets=(repo.id, repo.owner_id),
        payload=payload.render(scope, action, shown),
    )


def _changed(event: RepoCreated | RepoDeleted, base_url: str, *, action: str) -> Trigger:
    return _about_repo(event.repo, base_url, scope="repo", action=action)


def _moved(event: RepoMoved, base_url: str) -> Trigger:
    """Whoever watches the repository, its owner before or its owner now hears of a move."""
    before, owner_id = event.repo, event.moved_to_owner_id
    moved_to = {"name": event.moved_to_name, "owner": {"id": owner_id}}
    trigger = _about_repo(before, base_url, scope="repo", action="move", movedTo=moved_to)
    if owner_id == before.owner_id:
        return replace(trigger, repo=replace(before, name=event.moved_to_name))
    # A resource group is its organization's, and stays behind.
    after = replace(before, name=event.moved_to_name, owner_id=owner_id, resource_group_id=None)
    return replace(trigger, repo=after, targets=(*trigger.targets, owner_id))


def _configured(event: RepoConfigUpdated, base_url: str) -> Trigger:
    changed = {"updatedConfig": event.updated_config}
    return _about_repo(event.repo, base_url, scope="repo.config", action="update", **changed)


def _pushed(event: RepoContentUpdated, base_url: str) -> Trigger:
    refs = [payload.render_ref(ref) for ref in event.updated_refs]
    return _about_repo(
        event.repo, base_url, scope="repo.content", action="update", updatedRefs=refs
    )


def _stored(event: RepoFilesUpdated, base_url: str) -> Trigger:
    files = [payload.render_file(file) for file in event.updated_files]
    return _about_repo(
        event.repo, base_url, scope="repo.content", action="update", updatedFiles=files
    )


def _discussed(
    event: ThreadCreated | ThreadUpdated | ThreadDeleted | CommentCreated | CommentUpdated,
    base_url: str,
    *,
    scope: str,
    action: str,
) -> Trigger | None:
    thread = event.thread
    # Papers, posts and blogs belong to no repository, and a push to a pull request is told as
    # content at once: its history follows late, when the request may be merged already.
    if thread.repo is None or getattr(event, "changed", ()) == ("content",):
        return None
    repo = payload.render_repo(thread.repo, base_url, with_head=False)
    shown = {"repo": repo, "discussion": payload.render_thread(thread, repo)}
    comment = getattr(event, "comment", None)
    if comment is not None:
        shown["comment"] = payload.render_comment(comment, shown["discussion"])
    return Trigger(
        domain=Domain.discussion,
        scope=scope,
        action=action,
        repo=thread.repo,
        targets=(thread.repo.id, thread.repo.owner_id),
        payload=payload.render(scope, action, shown),
    )


_KINDS: dict[type[Event], Callable[[Any, str], Trigger | None]] = {
    RepoCreated: partial(_changed, action="create"),
    RepoDeleted: partial(_changed, action="delete"),
    RepoMoved: _moved,
    RepoConfigUpdated: _configured,
    RepoContentUpdated: _pushed,
    RepoFilesUpdated: _stored,
    ThreadCreated: partial(_discussed, scope="discussion", action="create"),
    ThreadUpdated: partial(_discussed, scope="discussion", action="update"),
    ThreadDeleted: partial(_discussed, scope="discussion", action="delete"),
    CommentCreated: partial(_discussed, scope="discussion.comment", action="create"),
    CommentUpdated: partial(_discussed, scope="discussion.comment", action="update"),
}

# The facts that may trigger a webhook.
TRIGGERING: tuple[type[Event], ...] = tuple(_KINDS)
