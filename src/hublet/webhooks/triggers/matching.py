"""Matching of events: which ones trigger webhooks, for which targets, with which payload; no I/O."""

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
    """Return the trigger that an event is for webhooks; None when it concerns none."""
    return _TRIGGERS[type(event)](event, base_url)


def _repo_trigger(
    repo: RepoSnapshot, base_url: str, *, scope: str, action: str, **parts: Any
) -> Trigger:
    rendered = {"repo": payload.render_repo(repo, base_url), **parts}
    return Trigger(
        domain=Domain.repo,
        scope=scope,
        action=action,
        repo=repo,
        targets=(repo.id, repo.owner_id),
        payload=payload.render(scope, action, rendered),
    )


def _repo_changed(event: RepoCreated | RepoDeleted, base_url: str, *, action: str) -> Trigger:
    return _repo_trigger(event.repo, base_url, scope="repo", action=action)


def _repo_moved(event: RepoMoved, base_url: str) -> Trigger:
    """A move concerns those who watch the repository, its owner before or its owner now."""
    before, owner_id = event.repo, event.moved_to_owner_id
    moved_to = {"name": event.moved_to_name, "owner": {"id": owner_id}}
    trigger = _repo_trigger(before, base_url, scope="repo", action="move", movedTo=moved_to)
    if owner_id == before.owner_id:
        return replace(trigger, repo=replace(before, name=event.moved_to_name))
    # A resource group belongs to its organization, so the repository leaves it.
    after = replace(before, name=event.moved_to_name, owner_id=owner_id, resource_group_id=None)
    return replace(trigger, repo=after, targets=(*trigger.targets, owner_id))


def _repo_configured(event: RepoConfigUpdated, base_url: str) -> Trigger:
    changed = {"updatedConfig": event.updated_config}
    return _repo_trigger(event.repo, base_url, scope="repo.config", action="update", **changed)


def _refs_updated(event: RepoContentUpdated, base_url: str) -> Trigger:
    refs = [payload.render_ref(ref) for ref in event.updated_refs]
    return _repo_trigger(
        event.repo, base_url, scope="repo.content", action="update", updatedRefs=refs
    )


def _files_updated(event: RepoFilesUpdated, base_url: str) -> Trigger:
    files = [payload.render_file(file) for file in event.updated_files]
    return _repo_trigger(
        event.repo, base_url, scope="repo.content", action="update", updatedFiles=files
    )


def _thread_changed(
    event: ThreadCreated | ThreadUpdated | ThreadDeleted | CommentCreated | CommentUpdated,
    base_url: str,
    *,
    scope: str,
    action: str,
) -> Trigger | None:
    thread = event.thread
    # Papers, posts and blogs belong to no repository. A push to a pull request has triggered an
    # event of content at once: the thread follows late, when the request may be merged already.
    if thread.repo is None or getattr(event, "changed", ()) == ("content",):
        return None
    repo = payload.render_repo(thread.repo, base_url, with_head=False)
    rendered = {"repo": repo, "discussion": payload.render_thread(thread, repo)}
    comment = getattr(event, "comment", None)
    if comment is not None:
        rendered["comment"] = payload.render_comment(comment, rendered["discussion"])
    return Trigger(
        domain=Domain.discussion,
        scope=scope,
        action=action,
        repo=thread.repo,
        targets=(thread.repo.id, thread.repo.owner_id),
        payload=payload.render(scope, action, rendered),
    )


_TRIGGERS: dict[type[Event], Callable[[Any, str], Trigger | None]] = {
    RepoCreated: partial(_repo_changed, action="create"),
    RepoDeleted: partial(_repo_changed, action="delete"),
    RepoMoved: _repo_moved,
    RepoConfigUpdated: _repo_configured,
    RepoContentUpdated: _refs_updated,
    RepoFilesUpdated: _files_updated,
    ThreadCreated: partial(_thread_changed, scope="discussion", action="create"),
    ThreadUpdated: partial(_thread_changed, scope="discussion", action="update"),
    ThreadDeleted: partial(_thread_changed, scope="discussion", action="delete"),
    CommentCreated: partial(_thread_changed, scope="discussion.comment", action="create"),
    CommentUpdated: partial(_thread_changed, scope="discussion.comment", action="update"),
}

# The events that may trigger a webhook.
TRIGGER_EVENTS: tuple[type[Event], ...] = tuple(_TRIGGERS)
