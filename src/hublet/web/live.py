"""Live pages: one stream for each open page, which says that its content changed and what is unread.

The page then asks for the fragment `live` of itself. However many pages are open, a process reads the
versions of one kind of content once a second at most, with one statement.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import AuthenticationNeeded, TooManyRequests
from hublet.core.http.event_streams import CheckAccess, EventStream
from hublet.core.http.exchange import exchange_of
from hublet.core.version_watcher import VersionWatcher, wait_for_change
from hublet.login.auth import find_session
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.store import versions_of as inbox_versions
from hublet.notifications.records import INBOXES_CHANNEL
from hublet.web.auth import PageVisit

# Of one person, or of one address: some windows on some machines.
MOST_STREAMS = 20
# People do not notice more, and everything that commits wakes the watcher.
_PAUSE_SECONDS = 1.0
_KEEP_ALIVE_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveKind:
    """One kind of content: the channel that its changes commit on, and its versions by key.

    A version is any number that changes with what the page shows. What has none is gone.
    """

    channel: str
    read_versions: Callable[[Reader, Sequence[str]], Awaitable[Mapping[str, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveContent:
    """What one page shows, and in which version."""

    kind: LiveKind
    key: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """What the stream of a page tells: its version and how much is unread, if it has them."""

    version: int | None = None
    unread: int | None = None

    def describe_changes(self, shown: "PageState") -> str:
        """Return the events that lead from what the page shows to this."""
        changed = f"event: changed\nid: {self.version}\ndata: \n\n"
        unread = f"event: unread\ndata: {self.unread}\n\n"
        return (changed if self.version != shown.version else "") + (
            unread if self.unread != shown.unread else ""
        )


INBOXES = LiveKind(channel=INBOXES_CHANNEL, read_versions=inbox_versions)


class TooManyPageStreams(TooManyRequests):
    def __init__(self) -> None:
        super().__init__(f"There are {MOST_STREAMS} open streams of you already; close one.")


class LiveWatcher(VersionWatcher):
    """Wakes the open pages of one kind of content."""

    def __init__(self, database: Database, kind: LiveKind) -> None:
        super().__init__(database, kind.channel, pause_seconds=_PAUSE_SECONDS)
        self._kind = kind

    async def read_versions(self, conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
        return await self._kind.read_versions(conn, keys)


class LiveStreams:
    """The open streams of pages of one process."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._open: Counter[str] = Counter()
        self._watchers: dict[LiveKind, LiveWatcher] = {}

    def check_room(self, viewer: str) -> None:
        if self._open[viewer] >= MOST_STREAMS:
            raise TooManyPageStreams

    @contextmanager
    def open(self, viewer: str, keys: Mapping[LiveKind, str]) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever one of these changes."""
        changed = asyncio.Event()
        self._open[viewer] += 1
        try:
            with ExitStack() as opened:
                for kind, key in keys.items():
                    watcher = self._watchers.setdefault(kind, LiveWatcher(self.database, kind))
                    opened.enter_context(watcher.subscribe(key, changed))
                yield changed
        finally:
            self._open -= Counter({viewer: 1})


def live_stream(
    visit: PageVisit, content: LiveContent | None = None, check: CheckAccess | None = None
) -> EventStream:
    """Answer with the stream of a page, as long as `check` lets its viewer see the content.

    Whoever is signed in also hears how much is unread.
    """
    request = visit.request
    streams: LiveStreams = request.app.state.live_streams
    user_id = visit.caller.user_id if visit.caller else None
    viewer = user_id or exchange_of(request).address
    streams.check_room(viewer)
    heard = request.headers.get("last-event-id", "")
    if content is not None and heard.isascii() and heard.isdigit():
        content = LiveContent(kind=content.kind, key=content.key, since=int(heard))
    events = partial(_listen, streams, content, user_id=user_id, viewer=viewer)
    return EventStream(request, events, check_access=partial(_check_access, visit, check))


async def _check_access(visit: PageVisit, check: CheckAccess | None) -> None:
    if visit.session is not None and await find_session(visit.request) is None:
        raise AuthenticationNeeded("The session has ended.")
    if check is not None:
        await check()


async def _listen(
    streams: LiveStreams,
    content: LiveContent | None,
    *,
    user_id: str | None,
    viewer: str,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield `changed` for each version after the one that the page shows, and `unread` counts."""
    keys = {INBOXES: user_id} if user_id is not None else {}
    if content is not None:
        keys[content.kind] = content.key
    shown = PageState(version=content.since if content else None)
    with streams.open(viewer, keys) as changed:
        yield ": listening\nretry: 2000\n\n"
        while not stopping.is_set():
            # Cleared before the read: a commit during it sets it again.
            changed.clear()
            state = await _read_state(streams.database, content, user_id)
            if content is not None and state.version is None:
                return
            if state != shown:
                await check_access()
                yield state.describe_changes(shown)
            shown = state
            while not (changed.is_set() or stopping.is_set()):
                await wait_for_change(changed, stopping, seconds=_KEEP_ALIVE_SECONDS)
                if not changed.is_set():
                    yield ": still listening\n\n"


async def _read_state(
    database: Database, content: LiveContent | None, user_id: str | None
) -> PageState:
    version = unread = None
    async with database.read() as conn:
        if content is not None:
            version = (await content.kind.read_versions(conn, [content.key])).get(content.key)
        if user_id is not None:
            unread = await inbox.count_unread(conn, user_id)
    return PageState(version=version, unread=unread)
