"""What the pages of lists, search and people show, made from records without I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

from hublet.accounts.records import Organization, User
from hublet.community.collections.records import CollectionRecord
from hublet.community.threads.records import Accounts
from hublet.core.dataclasses import dataclass
from hublet.core.pages import plural
from hublet.jobs.records import JobRecord
from hublet.repos.browse.taxonomy import tasks
from hublet.repos.records import Repo, RepoType
from hublet.search.records import SearchHit, SearchKind, SnippetPart, TextHit, TextKind
from hublet.search.schemas import path_of_text
from hublet.web.publications import PublicationRow, publication_path
from hublet.web.repo_head import path_of

# How lists are sorted: the value in the address, as in the API, and what a person reads.
SORTS = (
    ("createdAt", "Newest"),
    ("trendingScore", "Trending"),
    ("lastModified", "Recently updated"),
    ("likes", "Most liked"),
    ("downloads", "Most downloaded"),
)
_KIND_TITLES = {
    SearchKind.model: "Models",
    SearchKind.dataset: "Datasets",
    SearchKind.space: "Spaces",
    SearchKind.kernel: "Kernels",
    SearchKind.bucket: "Buckets",
    SearchKind.container: "Containers",
    SearchKind.user: "People",
    SearchKind.organization: "Organizations",
    SearchKind.paper: "Papers",
    SearchKind.post: "Posts",
    SearchKind.blog: "Blogs",
    SearchKind.collection: "Collections",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoRow:
    """A repository in a list."""

    repo: Repo
    # Its task or another word that says most of it.
    about: str | None

    @property
    def path(self) -> str:
        return path_of(self.repo)


def repo_row(repo: Repo) -> RepoRow:
    """Return the row of a repository; its task stands in the card, or among its tags."""
    card = repo.card or {}
    named = card.get("pipeline_tag")
    known = tasks()
    ids = [named] if isinstance(named, str) else [tag for tag in repo.tags if tag in known][:1]
    about = known[ids[0]].label if ids and ids[0] in known else (ids[0] if ids else repo.sdk)
    return RepoRow(repo=repo, about=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoListPage:
    type: RepoType
    rows: list[RepoRow]
    # The filters as they stand in the address, and each without one tag.
    search: str
    author: str
    sort: str
    tags: list[tuple[str, str]]
    next_url: str | None
    # Of models: a range of parameters.
    num_parameters: str = ""

    @property
    def is_filtered(self) -> bool:
        return bool(self.search or self.author or self.tags or self.num_parameters)


def without_tag(path: str, query: Sequence[tuple[str, str]], tag: str) -> str:
    """Return the address of a list without one of its tags, at its first page."""
    kept = [pair for pair in query if pair[1] != tag and pair[0] != "cursor"]
    return f"{path}?{urlencode(kept)}" if kept else path


def collection_path(collection: CollectionRecord) -> str:
    return f"/collections/{quote(collection.full_slug)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRow:
    """A collection in a list, with names of its first items."""

    collection: CollectionRecord
    names: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return collection_path(self.collection)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A hit of a search: what it is, where it is, and a line about it."""

    kind: SearchKind
    title: str
    path: str
    about: str | None = None
    row: RepoRow | None = None


def found_row(hit: SearchHit, accounts: Accounts) -> FoundRow:
    """Return the row of a hit; the owners of posts and blogs are among the accounts."""
    target = hit.target
    if isinstance(target, Repo):
        row = repo_row(target)
        return FoundRow(
            kind=hit.kind, title=target.full_name, path=row.path, about=row.about, row=row
        )
    if isinstance(target, User | Organization):
        return FoundRow(
            kind=hit.kind,
            title=target.name,
            path=f"/{quote(target.name)}",
            about=target.fullname if target.fullname != target.name else None,
        )
    if isinstance(target, CollectionRecord):
        return FoundRow(
            kind=hit.kind,
            title=target.title,
            path=collection_path(target),
            about=f"{target.owner.name} · {target.description}".removesuffix(" · "),
        )
    return FoundRow(kind=hit.kind, title=target.title, path=publication_path(target, accounts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """Hits of a search; without a text there is nothing to find."""

    text: str
    kind: SearchKind | None
    rows: list[FoundRow]
    # As `ui.tabs` takes them: all, and each kind of which there is something.
    tabs: list[tuple[str, str, str | None, int | None, bool]]
    next_url: str | None
    suggestion: str = ""
    is_corrected: bool = False

    @property
    def texts_url(self) -> str:
        return full_text_url(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A text with the words of a search, and the place where they stand."""

    title: str
    path: str
    # What it is, and where.
    place: str
    icon: str
    snippet: tuple[SnippetPart, ...]


_TEXT_TITLES = {
    TextKind.model: "Models",
    TextKind.dataset: "Datasets",
    TextKind.space: "Spaces",
    TextKind.kernel: "Kernels",
    TextKind.discussion: "Discussions",
    TextKind.paper: "Papers",
}


def text_row(hit: TextHit) -> TextRow:
    if hit.file and hit.repo:
        icon, place = "file", f"{hit.file} of the {hit.repo.type}"
    elif hit.kind is TextKind.discussion and hit.repo and hit.thread:
        noun = "Pull request" if hit.thread.is_pull_request else "Discussion"
        icon = "git-pull-request" if hit.thread.is_pull_request else "message-square"
        place = f"{noun} #{hit.thread.number} of {hit.repo.full_name}"
    else:
        icon, place = "book-open", "Paper"
    if hit.comment_id:
        place = f"Comment · {place}"
    return TextRow(
        title=hit.title, path=path_of_text(hit), place=place, icon=icon, snippet=hit.snippet
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextResultPage:
    """Texts with all words of a search; without words there is nothing to find."""

    text: str
    kind: TextKind | None
    rows: list[TextRow]
    next_url: str | None

    @property
    def names_url(self) -> str:
        return search_url(self.text)

    @property
    def tabs(self) -> list[tuple[str, str, str | None, int | None, bool]]:
        return [
            (full_text_url(self.text), "All", None, None, self.kind is None),
            *(
                (full_text_url(self.text, kind), title, None, None, kind is self.kind)
                for kind, title in _TEXT_TITLES.items()
            ),
        ]


def full_text_url(text: str, kind: TextKind | None = None, cursor: str = "") -> str:
    query = {"q": text} | ({"type": kind} if kind else {}) | ({"cursor": cursor} if cursor else {})
    return f"/search/full-text?{urlencode(query)}"


def search_url(text: str, kind: SearchKind | None = None, cursor: str = "") -> str:
    query = {"q": text} | ({"type": kind} if kind else {}) | ({"cursor": cursor} if cursor else {})
    return f"/search?{urlencode(query)}"


def result_tabs(
    text: str, current: SearchKind | None, counts: Mapping[SearchKind, int]
) -> list[tuple[str, str, str | None, int | None, bool]]:
    """Return the tabs of a search: a kind that has nothing is left out, unless it is shown."""
    shown = [kind for kind, count in counts.items() if count or kind is current]
    if current is not None and current not in shown:
        shown.append(current)
    return [
        (search_url(text), "All", None, None, current is None),
        *(
            (search_url(text, kind), _KIND_TITLES[kind], None, counts.get(kind), kind is current)
            for kind in shown
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxLine:
    """Something that happened, as the start page tells it."""

    title: str
    path: str
    place: str
    icon: str
    is_read: bool
    updated_at: datetime


def inbox_line(item: Mapping[str, Any]) -> InboxLine:
    """Return the line of an item of the inbox, which is in the form of the interface."""
    title, path, place, icon = _describe_item(item)
    return InboxLine(
        title=title,
        path=path,
        place=place,
        icon=icon,
        is_read=item["read"],
        updated_at=datetime.fromisoformat(item["updatedAt"]),
    )


def _describe_item(item: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if item["type"] == "repo":
        repo, thread = item["repo"], item["discussion"]
        path = f"/{RepoType(repo['type']).prefix}{repo['name']}/discussions/{thread['num']}"
        icon = "git-pull-request" if thread["isPullRequest"] else "message-square"
        return f"{thread['title']} #{thread['num']}", path, repo["name"], icon
    if item["type"] == "paper":
        paper = item["paper"]
        return paper["title"], f"/papers/{paper['_id']}", "Papers", "book-open"
    kind = "posts" if item["type"] == "post" else "blog"
    article = item["post" if item["type"] == "post" else "blog"]
    path = f"/{kind}/{article['authorName']}/{article['slug']}"
    return article["title"], path, article["authorName"], "book-open"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPage:
    base_url: str
    # The viewer's own repositories, what they heard of, and their jobs that go on.
    own: list[RepoRow]
    lines: list[InboxLine]
    running: list[JobRecord]
    popular: Mapping[RepoType, list[RepoRow]]


class PeopleTab(StrEnum):
    """Lists of people around a person or an organization."""

    members = "members"
    followers = "followers"
    following = "following"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    """A person in a list, with the button that follows them."""

    name: str
    fullname: str
    # In the organization whose members are listed.
    role: str | None
    is_following: bool
    # Whether the viewer is somebody else, and signed in.
    may_follow: bool
    form_token: str


def people_path(name: str, tab: PeopleTab) -> str:
    """Return the address of a list of people; members have one that no repository can have."""
    if tab is PeopleTab.members:
        return f"/organizations/{quote(name)}/members"
    return f"/{quote(name)}/{tab}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """One of the lists of people around an account."""

    name: str
    tab: PeopleTab
    # How many there are in each list that this account has.
    counts: Mapping[PeopleTab, int]
    rows: list[PersonRow]
    next_url: str | None

    @property
    def tabs(self) -> list[tuple[str, str, str | None, int | None, bool]]:
        return [
            (people_path(self.name, tab), tab.capitalize(), None, count, tab is self.tab)
            for tab, count in self.counts.items()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePage:
    """A person or an organization: what they have here, and who belongs to them."""

    name: str
    fullname: str
    is_organization: bool
    # Repositories by type, those that the viewer may see, the newest first.
    sections: list[tuple[RepoType, list[RepoRow]]]
    # Posts and blogs, the newest first: where all of them are, and these.
    publications: list[tuple[str, str, list[PublicationRow]]]
    # The first collections in their order, those that the viewer may see, and how many there are.
    collections: list[CollectionRow]
    collection_count: int
    # Members of an organization, or the organizations of a person.
    people: list[str]
    counts: Mapping[PeopleTab, int]
    # In other networks: the network, the name there, and its address.
    socials: list[tuple[str, str, str]]
    is_following: bool | None
    # Whether it is the viewer's own page.
    is_own: bool
    # Whether the viewer sees their jobs.
    has_jobs: bool
    # Whether the viewer administers this organization, or may ask to join it.
    is_administrator: bool
    may_join: bool
    form_token: str

    @property
    def path(self) -> str:
        return f"/{quote(self.name)}"

    @property
    def lists(self) -> list[tuple[str, str]]:
        """The lists of people as links: the address, and the count in words."""
        words = {PeopleTab.members: "member", PeopleTab.followers: "follower"}
        return [
            (
                people_path(self.name, tab),
                plural(count, words[tab]) if tab in words else f"{count:,} {tab}",
            )
            for tab, count in self.counts.items()
        ]
