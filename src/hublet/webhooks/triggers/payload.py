"""Payload of webhooks, version 3: which events trigger them, for which targets, and what is sent.

Without I/O. The public clients read the payload, so nothing in it may change.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

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
from hublet.repos.records import RepoType
from hublet.webhooks.records import Domain
from hublet.webhooks.triggers.records import Trigger

VERSION = 3


def trigger_of(event: Event, base_url: str) -> Trigger | None:
    """Return the trigger that an event is for webhooks; None when it concerns none."""
    return _TRIGGERS[type(event)](event, base_url)


def _repo_trigger(
    repo: RepoSnapshot, base_url: str, *, scope: str, action: str, **parts: Any
) -> Trigger:
    rendered = {"repo": render_repo(repo, base_url), **parts}
    return Trigger(
        domain=Domain.repo,
        scope=scope,
        action=action,
        repo=repo,
        targets=(repo.id, repo.owner_id),
        payload=render(scope, action, rendered),
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
    refs = [render_ref(ref) for ref in event.updated_refs]
    return _repo_trigger(
        event.repo, base_url, scope="repo.content", action="update", updatedRefs=refs
    )


def _files_updated(event: RepoFilesUpdated, base_url: str) -> Trigger:
    files = [render_file(file) for file in event.updated_files]
    return _repo_trigger(
        event.repo, base_url, scope="repo.content", action="update", updatedFiles=files
    )


def _images_updated(event: RepoImagesUpdated, base_url: str) -> Trigger:
    """Tags of images are told twice: as refs, which the public clients know, and as what they are."""
    updated = event.updated_images
    return _repo_trigger(
        event.repo,
        base_url,
        scope="repo.content",
        action="update",
        updatedRefs=[render_tag(each) for each in updated if each.tag is not None],
        updatedImages=[render_image(each, event.repo) for each in updated],
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
    repo = render_repo(thread.repo, base_url, with_head=False)
    rendered = {"repo": repo, "discussion": render_thread(thread, repo)}
    comment = getattr(event, "comment", None)
    if comment is not None:
        rendered["comment"] = render_comment(comment, rendered["discussion"])
    return Trigger(
        domain=Domain.discussion,
        scope=scope,
        action=action,
        repo=thread.repo,
        targets=(thread.repo.id, thread.repo.owner_id),
        payload=render(scope, action, rendered),
    )


_TRIGGERS: dict[type[Event], Callable[[Any, str], Trigger | None]] = {
    RepoCreated: partial(_repo_changed, action="create"),
    RepoDeleted: partial(_repo_changed, action="delete"),
    RepoMoved: _repo_moved,
    RepoConfigUpdated: _repo_configured,
    RepoContentUpdated: _refs_updated,
    RepoFilesUpdated: _files_updated,
    RepoImagesUpdated: _images_updated,
    ThreadCreated: partial(_thread_changed, scope="discussion", action="create"),
    ThreadUpdated: partial(_thread_changed, scope="discussion", action="update"),
    ThreadDeleted: partial(_thread_changed, scope="discussion", action="delete"),
    CommentCreated: partial(_thread_changed, scope="discussion.comment", action="create"),
    CommentUpdated: partial(_thread_changed, scope="discussion.comment", action="update"),
}

# The events that may trigger a webhook.
TRIGGER_EVENTS: tuple[type[Event], ...] = tuple(_TRIGGERS)


def render(scope: str, action: str, parts: Mapping[str, Any]) -> bytes:
    """Render the payload once; every attempt of every webhook sends these bytes."""
    return msgspec.json.encode({"event": {"action": action, "scope": scope}, **parts})


def render_body(payload: bytes, webhook_id: str) -> bytes:
    """Return the body that one webhook sends: the payload with the webhook's id."""
    return b'%b,"webhook":{"id":"%b","version":%d}}' % (payload[:-1], webhook_id.encode(), VERSION)


def render_repo(repo: RepoSnapshot, base_url: str, *, with_head: bool = True) -> dict[str, Any]:
    kind = RepoType(repo.type)
    rendered: dict[str, Any] = {
        "type": repo.type,
        "name": repo.name,
        "id": repo.id,
        "private": repo.private,
        "url": {
            "web": f"{base_url}/{kind.prefix}{repo.name}",
            "api": f"{base_url}/api/{kind.plural}/{repo.name}",
        },
        "owner": {"id": repo.owner_id},
        "tags": list(repo.tags),
    }
    if with_head and repo.head_sha is not None:
        rendered["headSha"] = repo.head_sha
    return rendered


def render_thread(thread: ThreadSnapshot, repo: Mapping[str, Any]) -> dict[str, Any]:
    """Render a discussion or a pull request of a repository that was rendered before."""
    place = f"/discussions/{thread.number}"
    rendered: dict[str, Any] = {
        "id": thread.id,
        "num": thread.number,
        "title": thread.title,
        "url": {kind: url + place for kind, url in repo["url"].items()},
        "status": thread.status,
        "author": {"id": thread.author_id},
        "isPullRequest": thread.is_pull_request,
        "pinned": thread.pinned,
    }
    if thread.is_pull_request:
        rendered["changes"] = {"base": thread.base}
        if thread.merge_commit_id is not None:
            rendered["changes"]["mergeCommitId"] = thread.merge_commit_id
    return rendered


def render_comment(comment: CommentSnapshot, thread: Mapping[str, Any]) -> dict[str, Any]:
    """Render a comment in a discussion that was rendered before."""
    rendered: dict[str, Any] = {
        "id": comment.id,
        "author": {"id": comment.author_id},
        "hidden": comment.hidden,
        "url": {"web": f"{thread['url']['web']}#{comment.id}"},
    }
    if comment.content is not None and not comment.hidden:
        rendered["content"] = comment.content
    return rendered


def render_ref(ref: UpdatedRef) -> dict[str, Any]:
    return {"ref": ref.ref, "oldSha": ref.old_sha, "newSha": ref.new_sha}


def render_tag(image: UpdatedImage) -> dict[str, Any]:
    parts = filter(None, ("refs/tags", image.path, image.tag))
    return {"ref": "/".join(parts), "oldSha": image.old_digest, "newSha": image.new_digest}


def render_image(image: UpdatedImage, repo: RepoSnapshot) -> dict[str, Any]:
    return {
        "image": f"{repo.name}/{image.path}" if image.path else repo.name,
        "tag": image.tag,
        "digest": image.new_digest,
        "oldDigest": image.old_digest,
    }


def render_file(file: UpdatedFile) -> dict[str, Any]:
    rendered: dict[str, Any] = {"path": file.path, "action": file.action}
    if file.xet_hash is not None:
        rendered["xetHash"] = file.xet_hash
    if file.size is not None:
        rendered["size"] = file.size
    return rendered
