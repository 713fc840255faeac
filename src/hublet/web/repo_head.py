"""Head of every page of a repository: its name, its tabs, and what the viewer may do with it."""

from dataclasses import replace
from enum import StrEnum
from urllib.parse import quote

from hublet.community.discussions import service as discussions
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.pages import Frame
from hublet.notifications.inbox import service as inbox
from hublet.repos import service as repos
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.sql.child import is_installed
from hublet.web.auth import PageVisit
from hublet.web.pages import frame_for

# Forms of a repository's pages share one purpose, with its id behind it.
PURPOSE = "repository"

_CARD_NAMES = {"model": "Model card", "dataset": "Dataset card"}


class RepoTab(StrEnum):
    """The tabs of a repository."""

    card = "card"
    viewer = "viewer"
    console = "console"
    files = "files"
    threads = "threads"
    commits = "commits"
    settings = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoHead:
    """What `repo.html` takes as `head`."""

    repo: Repo
    frame: Frame | None
    tab: RepoTab
    form_token: str
    open_threads: int
    is_liked: bool
    is_watched: bool
    rights: frozenset[Right]

    @property
    def may_read(self) -> bool:
        return Right.read in self.rights

    @property
    def may_write(self) -> bool:
        return Right.write in self.rights

    @property
    def may_manage(self) -> bool:
        return Right.manage in self.rights

    @property
    def path(self) -> str:
        """The address of the repository's page; addresses of its other pages go on behind it."""
        return path_of(self.repo)

    @property
    def editor_path(self) -> str:
        """Where scripts ask for previews and names, and bring files."""
        return f"{self.path}/discussions"

    @property
    def tabs(self) -> list[tuple[str, str, str, int | None, bool]]:
        """The tabs as `ui.tabs` takes them."""
        found = [
            (RepoTab.card, "", *self._card, None),
            (RepoTab.viewer, "/viewer", "Viewer", "table", None),
            (RepoTab.console, "/sql-console", "SQL", "terminal", None),
            (RepoTab.files, *self._files, "folder", None),
            (RepoTab.threads, "/discussions", "Community", "message-square", self.open_threads),
            (RepoTab.commits, "/commits/main", "Commits", "history", None),
            (RepoTab.settings, "/settings", "Settings", "settings", None),
        ]
        return [
            (self.path + path, text, icon, count, tab is self.tab)
            for tab, path, text, icon, count in found
            if self._has(tab)
        ]

    @property
    def _card(self) -> tuple[str, str]:
        if self._is_container:
            return "Tags", "tag"
        return _CARD_NAMES.get(self.repo.type, "Card"), "book-open"

    @property
    def _is_container(self) -> bool:
        return self.repo.type is RepoType.container

    @property
    def _files(self) -> tuple[str, str]:
        # What has no git has no card either: the page of a bucket shows its files.
        if self.repo.type.has_git:
            return "/tree/main", "Files and versions"
        return "/tree" if self._is_container else "", "Files"

    def _has(self, tab: RepoTab) -> bool:
        if tab is RepoTab.settings:
            return self.may_manage
        if tab is RepoTab.threads:
            return not self.repo.discussions_disabled
        if tab in {RepoTab.viewer, RepoTab.console}:
            return self.repo.type is RepoType.dataset and is_installed()
        if tab is RepoTab.card and self._is_container:
            return True
        return self.repo.type.has_git or tab is RepoTab.files


def path_of(repo: Repo) -> str:
    return f"/{repo.type.prefix}{quote(repo.full_name)}"


async def get_head(
    conn: Reader, visit: PageVisit, address: RepoAddress, *, tab: RepoTab, right: Right = Right.see
) -> RepoHead:
    """Return the head of a repository that the viewer may see; otherwise it is not found."""
    repo = await repos.get(conn, visit.caller, address, right)
    open_threads = await discussions.count_open(conn, repo)
    return await build_head(conn, visit, repo, tab=tab, open_threads=open_threads)


async def build_head(
    conn: Reader, visit: PageVisit, repo: Repo, *, tab: RepoTab, open_threads: int
) -> RepoHead:
    """Return the head of a repository that the viewer was found to be able to see."""
    viewer = await repos.get_viewer(conn, visit.caller, repo)
    unread, is_watched = 0, False
    if visit.caller is not None:
        unread, is_watched = await inbox.count_unread_and_find_watch(
            conn, visit.caller.user_id, repo_id=repo.id
        )
    frame = await frame_for(visit)
    return RepoHead(
        repo=repo,
        frame=None if frame is None else replace(frame, unread=unread),
        tab=tab,
        form_token=visit.form_token(f"{PURPOSE} {repo.id}"),
        open_threads=open_threads,
        is_liked=viewer.is_liked,
        is_watched=is_watched,
        rights=viewer.rights,
    )
