"""Records of search: kinds, documents of the index, queries, hits and pages of them."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from hublet.accounts.records import Organization, User
from hublet.community.collections.records import CollectionRecord
from hublet.community.threads.records import Thread
from hublet.core.dataclasses import dataclass
from hublet.repos.records import Repo, RepoType


class SearchKind(StrEnum):
    """What can be found. Another kind needs a letter here and its document."""

    model = "model"
    dataset = "dataset"
    space = "space"
    kernel = "kernel"
    bucket = "bucket"
    container = "container"
    user = "user"
    organization = "org"
    paper = "paper"
    post = "post"
    blog = "blog"
    collection = "collection"

    @property
    def letter(self) -> str:
        """What its scopes begin with: keys are short."""
        return _LETTERS[self]


_LETTERS = dict(zip(SearchKind, "mdskbcuoptgl", strict=True))
REPO_KINDS = tuple(SearchKind(type_) for type_ in RepoType)


class IndexSource(StrEnum):
    """Where documents come from; of a comment there is its text alone."""

    repo = "repo"
    account = "account"
    thread = "thread"
    collection = "collection"
    comment = "comment"


SearchTarget = Repo | User | Organization | Thread | CollectionRecord

# Steps between the ranks of words of a document, by the line that they stand in.
RANK_STEP = 64
HOTTEST = RANK_STEP - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """The words under which something is found, and where they stand: the first line counts most."""

    kind: SearchKind
    target_id: str
    scope: str
    heat: int = 0
    # Names without what separates their words, as in bertbase.
    whole_names: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    text_version: str | None = None

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        return (self.whole_names, self.names, self.labels, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPosition:
    """A place in the order of hits; the default is before the first one."""

    rank: int = -RANK_STEP
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document with the words of a query; whether the caller may see it is decided later."""

    position: IndexPosition
    kind: SearchKind
    target_id: str
    has_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Conditions beside the words. Those on repositories leave other kinds alone."""

    namespace: str = ""
    # All of them, by the kind of repository.
    tags: Mapping[SearchKind, tuple[str, ...]] = field(default_factory=dict)
    # One of them.
    any_tags: Mapping[SearchKind, tuple[str, ...]] = field(default_factory=dict)
    gated: bool | None = None
    # Owners of repositories, and organizations themselves, by id; None: any.
    owner_ids: tuple[str, ...] | None = None
    organization_ids: tuple[str, ...] | None = None
    # Repositories that are wanted whoever owns them, and organizations that are not.
    repo_ids: frozenset[str] = frozenset()
    without_organizations: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    text: str
    kinds: tuple[SearchKind, ...] = tuple(SearchKind)
    filters: SearchFilters = field(default_factory=SearchFilters)
    limit: int = 20
    # Addresses that are not shown, of `search_kinds` only.
    exclude: frozenset[str] = frozenset()
    # Users who come first when they match, of `search_kinds` only.
    preferred_users: tuple[str, ...] = ()
    # From the page before.
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    kind: SearchKind
    position: IndexPosition
    target: SearchTarget

    @property
    def address(self) -> str:
        """Its kind and name, as in models/ada/engine, users/ada or papers/2401.12345."""
        if isinstance(self.target, Thread):
            return f"{self.kind}s/{self.target.paper_id or self.target.id}"
        if isinstance(self.target, Repo):
            return f"{self.target.type.plural}/{self.target.full_name}"
        if isinstance(self.target, CollectionRecord):
            return f"collections/{self.target.full_slug}"
        return f"{self.kind}s/{self.target.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSection:
    """The first hits of one kind, and how many there are, at most `MOST_COUNTED`."""

    hits: tuple[SearchHit, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    hits: tuple[SearchHit, ...] = ()
    # Empty on the last page.
    next_cursor: str = ""
    # How many there are of each kind, at most `MOST_COUNTED`; on the first page only.
    counts: Mapping[SearchKind, int] = field(default_factory=dict)
    # The query with mistyped words corrected, where that finds more.
    suggestion: str = ""
    # Whether the hits are those of the suggestion.
    is_corrected: bool = False


class TextKind(StrEnum):
    """Whose whole text can be found."""

    model = "model"
    dataset = "dataset"
    space = "space"
    kernel = "kernel"
    discussion = "discussion"
    paper = "paper"

    @property
    def letter(self) -> str:
        return _TEXT_LETTERS[self]


_TEXT_LETTERS = dict(zip(TextKind, "mdskxp", strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDocument:
    """The words of a whole text, each with its weight, and who may see it."""

    kind: TextKind
    # The repository with one of its files, the thread, or the comment.
    source_id: str
    file: str = ""
    thread_id: str | None = None
    repo_id: str | None = None
    scope: str
    rank: int = 0
    version: str | None = None
    words: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPosition:
    """A place in the order of hits, the best first."""

    score: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCandidate:
    """A text with all words of a query, and how much each of them weighs there."""

    number: int
    rank: int
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSource:
    """Where the text of a candidate stands now, if it still does."""

    number: int
    kind: TextKind
    source_id: str
    file: str
    thread_id: str | None
    repo_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextQuery:
    text: str
    kinds: tuple[TextKind, ...] = tuple(TextKind)
    limit: int = 20
    # From the page before, already read.
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetPart:
    """A piece of a text, which is one of the words that were looked for or stands between them."""

    text: str
    is_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextHit:
    """A text that was found: what it belongs to, and the place where the words stand."""

    kind: TextKind
    position: TextPosition
    title: str
    snippet: tuple[SnippetPart, ...]
    # The repository of a file or a discussion, and the file.
    repo: Repo | None = None
    file: str = ""
    # The discussion or paper, and the comment unless it is the text that opens it.
    thread: Thread | None = None
    comment_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendingRepo:
    """A public repository of the moment, and whether the caller likes it."""

    repo: Repo
    is_liked: bool


def sdk_of(space: Repo) -> str | None:
    """Return the SDK of a space: its card comes before what it was created with."""
    named = (space.card or {}).get("sdk")
    return named if isinstance(named, str) else space.sdk
