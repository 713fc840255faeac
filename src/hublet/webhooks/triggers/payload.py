"""Payload of a delivery, version 3, as the public clients read it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hublet.events import (
    CommentSnapshot,
    RepoSnapshot,
    ThreadSnapshot,
    UpdatedFile,
    UpdatedRef,
)
from hublet.repos.records import RepoType

VERSION = 3


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


def render_file(file: UpdatedFile) -> dict[str, Any]:
    rendered: dict[str, Any] = {"path": file.path, "action": file.action}
    # The public service has the hash of its own storage here, we have the SHA-256.
    if file.sha256 is not None:
        rendered["xetHash"] = file.sha256
    if file.size is not None:
        rendered["size"] = file.size
    return rendered
