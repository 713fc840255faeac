"""The switches of interface 2.5: what each one stands for, and how it stands at first."""

from enum import StrEnum

from hublet.core.light_dataclasses import dataclass


class Key(StrEnum):
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
    """How a key stands until its owner says otherwise, and what it decides."""

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

SWITCHES: dict[Key, Switch] = {
    Key.announcements: _UNUSED,
    Key.arxiv_paper_activity: _mail("papers that you take part in or were mentioned in"),
    Key.content_access_policy_request: _UNUSED,
    Key.daily_papers_digest: _mail("the papers of the day before, once a day", default=False),
    Key.discussions_participating: _mail(f"{_DISCUSSIONS} that {_INVOLVED}"),
    Key.discussions_watched: _mail(f"{_DISCUSSIONS}, posts and blogs of what you watch"),
    Key.gated_user_access_request: _mail("requests to read a gated repository"),
    Key.inference_endpoint_status: _UNUSED,
    Key.job_status: _mail("jobs that ended"),
    Key.launch_autonlp: _UNUSED,
    Key.launch_spaces: _UNUSED,
    Key.launch_prepaid_credits: _UNUSED,
    Key.launch_training_cluster: _UNUSED,
    Key.org_request: _mail("organizations that added you"),
    Key.org_suggestions: _UNUSED,
    Key.org_verified_suggestions: _UNUSED,
    Key.org_suggestions_to_create: _UNUSED,
    Key.posts_participating: _mail(f"posts and blogs that {_INVOLVED}"),
    Key.user_follows: _mail("those who began to follow you"),
    Key.secret_detected: _mail("credentials of yours that were found where others can read them"),
    Key.web_discussions_participating: _inbox(f"{_DISCUSSIONS} that {_INVOLVED}"),
    Key.web_discussions_watched: _inbox(f"{_DISCUSSIONS}, posts and blogs of what you watch"),
    Key.web_posts_participating: _inbox(f"posts, blogs and papers that {_INVOLVED}"),
    Key.api_inference_sunset: _UNUSED,
    Key.locked_out: _mail("your account being switched off"),
    Key.repo_release: _mail("new tags in repositories that you watch"),
}

# The one key of interface 2.5 that is a time and no switch.
PRODUCT_UPDATES_AFTER = "product_updates_after"
PRODUCT_UPDATES_AFTER_SENTENCE = (
    "Kept for the client: product updates before it are known. Nothing in this hub sends them."
)
