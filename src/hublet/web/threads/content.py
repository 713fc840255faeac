"""Content of comments: Markdown in its place, rendered in a thread, and the characters of emoji."""

import asyncio
from dataclasses import replace
from functools import lru_cache

from markupsafe import Markup

from hublet.community.threads.records import Emoji
from hublet.core.hub import Hub, Switch
from hublet.repos.records import Repo
from hublet.web.rendering.links import MarkdownPlace, place_in_repo
from hublet.web.rendering.markdown import render_comment
from hublet.web.repo_head import path_of

EMOJI = {
    Emoji.thumbsup: "👍",
    Emoji.heart: "❤️",
    Emoji.rocket: "🚀",
    Emoji.fire: "🔥",
    Emoji.eyes: "👀",
    Emoji.hugs: "🤗",
    Emoji.cool: "😎",
    Emoji.plus: "\N{HEAVY PLUS SIGN}",
    Emoji.brain: "🧠",
    Emoji.handshake: "🤝",
    Emoji.sad: "😔",
    Emoji.mindblown: "🤯",
}

# Rendered texts that are kept, and how long one may be to be kept: 64 MB at the very most.
_MOST_KEPT = 1024
_LONGEST_KEPT = 8192

_render_kept = lru_cache(maxsize=_MOST_KEPT)(render_comment)


def place_of(repo: Repo | None, hub: Hub, *, anchor: str = "") -> MarkdownPlace:
    """Return the place of a comment, for its links; papers, posts and blogs have no repository."""
    base_url, remote_images = hub.settings.base_url, hub.is_on(Switch.remote_images)
    place = (
        MarkdownPlace(hub=base_url, remote_images=remote_images)
        if repo is None
        else place_in_repo(path_of(repo), hub=base_url, remote_images=remote_images)
    )
    return replace(place, anchor=anchor, heading_level=3)


def render_markdown(text: str, place: MarkdownPlace) -> Markup:
    """Return a comment as HTML. Blocks; call it from a thread."""
    return (_render_kept if len(text) <= _LONGEST_KEPT else render_comment)(text, place)


async def render_text(text: str, repo: Repo | None, hub: Hub) -> Markup:
    """Return what somebody is about to send, as HTML."""
    return await asyncio.to_thread(render_markdown, text, place_of(repo, hub, anchor="preview"))
