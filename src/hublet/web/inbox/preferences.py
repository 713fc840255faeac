"""Preferences of notifications in words, by what they are about; and the lists of what somebody watches or
muted: searched by name, by type, page by page.
"""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from hublet.core.dataclasses import dataclass
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import MuteType, SubscriptionEntry, WatchType

K = PreferenceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRow:
    """What one can hear of, and the switches that decide it: of the inbox, and of mail."""

    text: str
    web: PreferenceKey | None = None
    mail: PreferenceKey | None = None
    # Messages of the hub: no switch keeps them out of the inbox.
    is_always_in_inbox: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceGroup:
    title: str
    rows: tuple[PreferenceRow, ...]
    hint: str = ""


def _mail(text: str, key: PreferenceKey) -> PreferenceRow:
    return PreferenceRow(text=text, mail=key)


def _message(text: str, key: PreferenceKey) -> PreferenceRow:
    return PreferenceRow(text=text, mail=key, is_always_in_inbox=True)


GROUPS = (
    PreferenceGroup(
        title="Discussions and pull requests",
        rows=(
            PreferenceRow(
                text="You take part, or were mentioned",
                web=K.web_discussions_participating,
                mail=K.discussions_participating,
            ),
            PreferenceRow(
                text="In repositories, and of people and organizations, that you watch; with "
                "their posts and blogs",
                web=K.web_discussions_watched,
                mail=K.discussions_watched,
            ),
        ),
    ),
    PreferenceGroup(
        title="Posts, blogs, papers",
        rows=(
            PreferenceRow(
                text="Posts and blogs in which you take part, or were mentioned; in the inbox also "
                "papers",
                web=K.web_posts_participating,
                mail=K.posts_participating,
            ),
            _mail("Papers in which you take part, or were mentioned", K.arxiv_paper_activity),
            _mail("The papers of the day before, once a day", K.daily_papers_digest),
        ),
    ),
    PreferenceGroup(
        title="Repositories and jobs",
        rows=(
            _mail("New tags in repositories that you watch", K.repo_release),
            _message("Somebody asks to read your gated repository", K.gated_user_access_request),
            _message("A job of yours ended", K.job_status),
        ),
    ),
    PreferenceGroup(
        title="Your account",
        rows=(
            _message("Somebody began to follow you", K.user_follows),
            _message("An organization added you", K.org_request),
            _message("A credential of yours can be read by others", K.secret_detected),
            _mail("Your account was switched off", K.locked_out),
        ),
    ),
    PreferenceGroup(
        title="Kept for programs",
        hint="Nothing in this hub sends these. Clients of other hubs ask for them.",
        rows=(
            _mail("Announcements", K.announcements),
            _mail("Requests about the access policy of content", K.content_access_policy_request),
            _mail("The state of inference endpoints", K.inference_endpoint_status),
            _mail("The end of the inference API", K.api_inference_sunset),
            _mail("Launch of AutoNLP", K.launch_autonlp),
            _mail("Launch of Spaces", K.launch_spaces),
            _mail("Launch of training clusters", K.launch_training_cluster),
            _mail("Launch of prepaid credits", K.launch_prepaid_credits),
            _mail("Organizations to join", K.org_suggestions),
            _mail("Verified organizations to join", K.org_verified_suggestions),
            _mail("Organizations to create", K.org_suggestions_to_create),
        ),
    ),
)


def keys_of(groups: Iterable[PreferenceGroup]) -> list[PreferenceKey]:
    """Return the switches that a form of these groups has."""
    rows = [row for group in groups for row in group.rows]
    return [key for row in rows for key in (row.web, row.mail) if key is not None]


PAGE_SIZE = 50
_TITLES = {
    WatchType.repo: "Repositories",
    WatchType.user: "People",
    WatchType.org: "Organizations",
    MuteType.thread: "Threads",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionList:
    """A page of what is watched or muted: those whose names have a text, by their types."""

    path: str
    search: str
    page: int
    total: int
    groups: Mapping[str, Sequence[SubscriptionEntry]]
    matching: int

    @property
    def newer(self) -> str | None:
        return self.address(self.page - 1) if self.page else None

    @property
    def older(self) -> str | None:
        return self.address(self.page + 1) if (self.page + 1) * PAGE_SIZE < self.matching else None

    def address(self, page: int) -> str:
        asked = {"q": self.search, "p": page}
        found = urlencode({name: value for name, value in asked.items() if value})
        return f"{self.path}?{found}" if found else self.path


def list_of(
    entries: Sequence[SubscriptionEntry], path: str, *, search: str, page: int
) -> SubscriptionList:
    text = search.casefold()
    matching = [each for each in entries if text in each.name.casefold()]
    order = list(_TITLES)
    matching.sort(key=lambda each: (order.index(_kind(each)), each.name.casefold()))
    groups: dict[str, list[SubscriptionEntry]] = {}
    for each in matching[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]:
        groups.setdefault(_TITLES[_kind(each)], []).append(each)
    return SubscriptionList(
        path=path,
        search=search,
        page=page,
        total=len(entries),
        groups=groups,
        matching=len(matching),
    )


def _kind(entry: SubscriptionEntry) -> WatchType | MuteType:
    return MuteType.thread if entry.type == MuteType.thread else WatchType(entry.type)
