"""Switches of interface 2.5: what each one decides, its default, and what a user chose."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from hublet.core.dataclasses import dataclass


class PreferenceKey(StrEnum):
    """What a user can switch on and off. Those that begin with web_ decide the inbox."""

    announcements = "announcements"
    arxiv_paper_activity = "arxiv_paper_activity"
    content_access_policy_request = "content_access_policy_request"
    daily_papers_digest = "daily_papers_digest"
    discussions_participating = "discussions_participating"
    discussions_watched = "discussions_watched"
    gated_user_access_request = "gated_user_access_request"
    inference_endpoint_status = "inference_endpoint_status"
    job_status = "job_status"
    launch_autonlp = "launch_autonlp"
    launch_spaces = "launch_spaces"
    launch_prepaid_credits = "launch_prepaid_credits"
    launch_training_cluster = "launch_training_cluster"
    org_request = "org_request"
    org_suggestions = "org_suggestions"
    org_verified_suggestions = "org_verified_suggestions"
    org_suggestions_to_create = "org_suggestions_to_create"
    posts_participating = "posts_participating"
    user_follows = "user_follows"
    secret_detected = "secret_detected"  # noqa: S105 - the name of a switch
    web_discussions_participating = "web_discussions_participating"
    web_discussions_watched = "web_discussions_watched"
    web_posts_participating = "web_posts_participating"
    api_inference_sunset = "api_inference_sunset"
    locked_out = "locked_out"
    repo_release = "repo_release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Default of a key, and what it decides."""

    default: bool
    # What is sent, as it completes "Mail about …"; None when nothing here sends it.
    about: str | None = None
    in_inbox: bool = False

    @property
    def sentence(self) -> str:
        state = "on" if self.default else "off"
        if self.about is None:
            return f"Kept for the client; nothing in this hub sends it. At first {state}."
        kind = "Items in the inbox" if self.in_inbox else "Mail"
        return f"{kind} about {self.about}. At first {state}."


def _mail(about: str, *, default: bool = True) -> Switch:
    return Switch(default=default, about=about)


def _inbox(about: str) -> Switch:
    return Switch(default=True, about=about, in_inbox=True)


_UNUSED = Switch(default=False)
_DISCUSSIONS = "discussions and pull requests"
_INVOLVED = "you take part in or were mentioned in"

SWITCHES: dict[PreferenceKey, Switch] = {
    PreferenceKey.announcements: _UNUSED,
    PreferenceKey.arxiv_paper_activity: _mail("papers that you take part in or were mentioned in"),
    PreferenceKey.content_access_policy_request: _UNUSED,
    PreferenceKey.daily_papers_digest: _mail(
        "the papers of the day before, once a day", default=False
    ),
    PreferenceKey.discussions_participating: _mail(f"{_DISCUSSIONS} that {_INVOLVED}"),
    PreferenceKey.discussions_watched: _mail(f"{_DISCUSSIONS}, posts and blogs of what you watch"),
    PreferenceKey.gated_user_access_request: _mail("requests to read a gated repository"),
    PreferenceKey.inference_endpoint_status: _UNUSED,
    PreferenceKey.job_status: _mail("jobs that ended"),
    PreferenceKey.launch_autonlp: _UNUSED,
    PreferenceKey.launch_spaces: _UNUSED,
    PreferenceKey.launch_prepaid_credits: _UNUSED,
    PreferenceKey.launch_training_cluster: _UNUSED,
    PreferenceKey.org_request: _mail("organizations that added you, and requests to join one"),
    PreferenceKey.org_suggestions: _UNUSED,
    PreferenceKey.org_verified_suggestions: _UNUSED,
    PreferenceKey.org_suggestions_to_create: _UNUSED,
    PreferenceKey.posts_participating: _mail(f"posts and blogs that {_INVOLVED}"),
    PreferenceKey.user_follows: _mail("those who began to follow you"),
    PreferenceKey.secret_detected: _mail(
        "credentials of yours that were found where others can read them"
    ),
    PreferenceKey.web_discussions_participating: _inbox(f"{_DISCUSSIONS} that {_INVOLVED}"),
    PreferenceKey.web_discussions_watched: _inbox(
        f"{_DISCUSSIONS}, posts and blogs of what you watch"
    ),
    PreferenceKey.web_posts_participating: _inbox(f"posts, blogs and papers that {_INVOLVED}"),
    PreferenceKey.api_inference_sunset: _UNUSED,
    PreferenceKey.locked_out: _mail("your account being switched off"),
    PreferenceKey.repo_release: _mail("new tags in repositories that you watch"),
}

# The one key of interface 2.5 that is a time and no switch.
PRODUCT_UPDATES_AFTER = "product_updates_after"
PRODUCT_UPDATES_AFTER_SENTENCE = (
    "Kept for the client: product updates before it are known. Nothing in this hub sends them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Preferences of a user; a key that is absent has its default."""

    switches: Mapping[PreferenceKey, bool] = field(default_factory=dict)
    product_updates_after: datetime | None = None
    # What launch_prepaid_credits goes with; kept only while that is on.
    prepaid_amount: str | None = None

    def wants(self, key: PreferenceKey) -> bool:
        return self.switches.get(key, SWITCHES[key].default)


DEFAULT_PREFERENCES = Preferences()
