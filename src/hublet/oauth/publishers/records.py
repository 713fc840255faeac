"""Records of trusted publishers: what one may be bound to, and the checks of an ID token against it.

Everything is decided without I/O; the checks of a provider are a list.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeGuard

from hublet.core.dataclasses import dataclass
from hublet.oauth.errors import InvalidPublisher
from hublet.repos.git.objects import PUBLISHER_MARK

GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
GITLAB_ISSUER = "https://gitlab.com"
MAX_CLAIMS = 20
MAX_VALUE = 255

_CLAIM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
# Printable ASCII only: letters that look alike would bind to somebody else.
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_QUOTES = frozenset("'\"`<>\\")
_ID = re.compile(r"[0-9]{1,20}")
_NEVER_BOUND = frozenset({"iss", "aud", "exp", "nbf", "iat", "jti"})


class Provider(StrEnum):
    github = "github"
    gitlab = "gitlab"
    circleci = "circleci"
    bitbucket = "bitbucket"
    custom = "custom"

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def subject_claim(self) -> str | None:
        """The claim that a publisher of this provider must name."""
        return _SUBJECT_CLAIMS.get(self)

    @property
    def pinned_claims(self) -> tuple[str, ...]:
        """Claims with ids that stay what they are when a name changes hands."""
        return _PINNED_CLAIMS.get(self, ())


_LABELS = {
    Provider.github: "GitHub Actions",
    Provider.gitlab: "GitLab CI/CD",
    Provider.circleci: "CircleCI",
    Provider.bitbucket: "Bitbucket Pipelines",
    Provider.custom: "Another issuer",
}
_SUBJECT_CLAIMS = {Provider.github: "repository", Provider.gitlab: "project"}
_PINNED_CLAIMS = {
    Provider.github: ("repository_owner_id", "repository_id"),
    Provider.gitlab: ("namespace_id", "project_id"),
}
# Tokens of these issuers are only ever checked by the rules of their own provider.
_OWN_PROVIDER = {GITHUB_ISSUER: Provider.github, GITLAB_ISSUER: Provider.gitlab}
DEFAULT_ISSUERS = {provider: issuer for issuer, provider in _OWN_PROVIDER.items()}

_BRANCH = re.compile(r"[^\s~^:?*\[\\]{1,255}")
# What the values of some claims look like, with an example for who typed another.
_FORMS: dict[tuple[Provider, str], tuple[re.Pattern[str], str]] = {
    (Provider.github, "repository"): (
        re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}"),
        "owner/repository",
    ),
    (Provider.github, "workflow"): (
        re.compile(r"[A-Za-z0-9._-]{1,100}\.ya?ml"),
        "release.yml, without folders",
    ),
    (Provider.github, "branch"): (_BRANCH, "main"),
    (Provider.gitlab, "project"): (
        re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)+"),
        "group/project",
    ),
    (Provider.gitlab, "workflow"): (re.compile(r"[^@\s]{1,200}\.ya?ml"), ".gitlab-ci.yml"),
    (Provider.gitlab, "branch"): (_BRANCH, "main"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherDraft:
    """What somebody wants a publisher to be."""

    provider: Provider
    issuer: str
    claims: Mapping[str, str]
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    id: str
    repo_id: str
    provider: Provider
    issuer: str
    claims: Mapping[str, str]
    pins: Mapping[str, str]
    creator_id: str
    creator_name: str
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None = None
    last_subject: str | None = None

    @property
    def summary(self) -> str:
        """The publisher in one line, for the audit log and for lists."""
        bound = ", ".join(f"{name}={value}" for name, value in sorted(self.claims.items()))
        return f"{host_of_issuer(self.issuer)} {bound}"[:500]


def host_of_issuer(issuer: str) -> str:
    """Return the issuer as people read it: without the scheme."""
    return issuer.partition("://")[2].removesuffix("/")


def check_draft(draft: PublisherDraft, *, issuers: tuple[str, ...]) -> None:
    """Refuse a draft that breaks a rule; the message names the field."""
    if draft.issuer not in issuers:
        known = ", ".join(issuers) or "none"
        raise InvalidPublisher(f"issuer must be one that this hub trusts: {known}.")
    own = _OWN_PROVIDER.get(draft.issuer, draft.provider)
    if draft.provider is not own:
        raise InvalidPublisher(f"provider must be {own} for the issuer {draft.issuer}.")
    if not 0 < len(draft.claims) <= MAX_CLAIMS:
        raise InvalidPublisher(f"claims must name 1 to {MAX_CLAIMS} claims.")
    needed = draft.provider.subject_claim
    if needed is not None and needed not in draft.claims:
        raise InvalidPublisher(f"claims.{needed} is needed for the provider {draft.provider}.")
    for name, value in draft.claims.items():
        _check_claim(draft.provider, name, value)
    _check_pins(draft)


def _check_claim(provider: Provider, name: str, value: str) -> None:
    if not _CLAIM_NAME.fullmatch(name):
        raise InvalidPublisher(
            "claims: a name has at most 100 letters, digits and the characters . _ : / -"
        )
    if name in _NEVER_BOUND:
        raise InvalidPublisher(f"claims.{name} is checked for every ID token and cannot be bound.")
    if len(value) > MAX_VALUE or not _VALUE.fullmatch(value) or _QUOTES & set(value):
        raise InvalidPublisher(
            f"claims.{name} must have 1 to {MAX_VALUE} printable ASCII characters, without quotes, "
            "brackets or backslashes, and without a space at either end."
        )
    pattern, example = _FORMS.get((provider, name), (_VALUE, ""))
    if not pattern.fullmatch(value):
        raise InvalidPublisher(f"claims.{name} must look like {example}.")


def _check_pins(draft: PublisherDraft) -> None:
    known = draft.provider.pinned_claims
    for name, value in draft.pins.items():
        if name not in known:
            raise InvalidPublisher(
                f"pinnedIds may name {' and '.join(known) or 'nothing'} for the provider {draft.provider}."
            )
        if not _ID.fullmatch(value):
            raise InvalidPublisher(f"pinnedIds.{name} must be a number.")


Claims = Mapping[str, Any]
# The name of a check, and whether the token passes it.
Check = tuple[str, bool]

_WORKFLOW_REF = re.compile(
    r"(?P<repository>[^/@]+/[^/@]+)/\.github/workflows/(?P<file>[^/@]+)@(?P<revision>.+)"
)
_LEEWAY_SECONDS = 30
_MAX_SUBJECT = 500


def broken_standard_claim(claims: Claims, *, audience: str, at: float) -> str | None:
    """Return the first claim of every ID token that is missing or wrong; `iss` is checked before."""
    issued, expires, not_before = claims.get("iat"), claims.get("exp"), claims.get("nbf", 0)
    subject, jti = claims.get("sub"), claims.get("jti", "")
    checks = (
        # Exactly one audience: a token that is meant for others too could come from one of them.
        ("aud", claims.get("aud") == audience and isinstance(claims.get("aud"), str)),
        ("iat", _is_number(issued) and issued <= at + _LEEWAY_SECONDS),
        ("exp", _is_number(expires) and expires > at - _LEEWAY_SECONDS),
        ("nbf", _is_number(not_before) and not_before <= at + _LEEWAY_SECONDS),
        ("sub", isinstance(subject, str) and 0 < len(subject) <= _MAX_SUBJECT),
        ("jti", isinstance(jti, str)),
    )
    return _first_broken(checks)


def _is_number(value: Any) -> TypeGuard[float]:
    # A larger one is no date, and the database could not keep it.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**33


def broken_claim(publisher: Publisher, claims: Claims) -> str | None:
    """Return the first check of a publisher that the token does not pass; None when it passes all."""
    by_provider = {Provider.github: _github, Provider.gitlab: _gitlab}.get(publisher.provider)
    checks = [] if by_provider is None else list(by_provider(publisher, claims))
    derived = _DERIVED.get(publisher.provider, frozenset())
    checks += [
        (name, _text(claims.get(name)) == value)
        for name, value in publisher.claims.items()
        if name not in derived
    ]
    return _first_broken([*checks, *_pins(publisher, claims)])


# Names that a list below reads in its own way; what else is bound is compared as it is.
_DERIVED = {
    Provider.github: frozenset({"repository", "branch", "environment", "workflow"}),
    Provider.gitlab: frozenset({"project", "branch", "environment", "workflow"}),
}


def _github(publisher: Publisher, claims: Claims) -> Iterator[Check]:
    bound = publisher.claims
    yield "repository", _same_name(claims.get("repository"), bound["repository"])
    # Such a run has the secrets of the repository and the code of a stranger.
    yield "event_name", claims.get("event_name") not in {None, "pull_request_target"}
    if "branch" in bound:
        yield "branch", claims.get("ref") == f"refs/heads/{bound['branch']}"
        yield "ref_type", claims.get("ref_type") == "branch"
    if "environment" in bound:
        yield "environment", _same_name(claims.get("environment"), bound["environment"])
    if "job_workflow_ref" not in bound:
        yield "workflow", _runs_own_workflow(bound, claims)


def _runs_own_workflow(bound: Mapping[str, str], claims: Claims) -> bool:
    """Tell whether the job's steps come from a workflow of the repository itself, at the run's revision.

    `workflow_ref` names what was started; a reusable workflow of somebody else may run in it.
    """
    found = _WORKFLOW_REF.fullmatch(str(claims.get("job_workflow_ref")))
    return (
        found is not None
        and _same_name(found["repository"], bound["repository"])
        and found["file"] == bound.get("workflow", found["file"])
        and found["revision"] in {claims.get("ref"), claims.get("sha")}
    )


def _gitlab(publisher: Publisher, claims: Claims) -> Iterator[Check]:
    bound = publisher.claims
    project = bound["project"]
    start = f"project_path:{project}:".lower()
    yield "project_path", _same_name(claims.get("project_path"), project)
    yield "sub", str(claims.get("sub")).lower().startswith(start)
    if "branch" in bound:
        yield "branch", claims.get("ref") == bound["branch"]
        yield "ref_type", claims.get("ref_type") == "branch"
    if "environment" in bound:
        # GitLab tells Prod from prod.
        yield "environment", claims.get("environment") == bound["environment"]
    if "workflow" in bound:
        yield "workflow", _has_own_configuration(publisher, claims)


def _has_own_configuration(publisher: Publisher, claims: Claims) -> bool:
    uri, _, revision = str(claims.get("ci_config_ref_uri")).rpartition("@")
    project, _, file = uri.removeprefix(f"{host_of_issuer(publisher.issuer)}/").partition("//")
    return (
        _same_name(project, publisher.claims["project"])
        and file == publisher.claims["workflow"]
        and revision in {claims.get("ref_path"), claims.get("sha")}
    )


def _pins(publisher: Publisher, claims: Claims) -> Iterator[Check]:
    """Compare ids, which a new owner of an old name does not have."""
    for name in publisher.provider.pinned_claims:
        value = _text(claims.get(name))
        yield name, value is not None and publisher.pins.get(name, value) == value


def pins_of(publisher: Publisher, claims: Claims) -> dict[str, str]:
    return {name: str(claims[name]) for name in publisher.provider.pinned_claims}


def most_specific(publishers: Sequence[Publisher]) -> list[Publisher]:
    """Order publishers: those that ask for more come first, of equal ones the oldest."""
    return sorted(publishers, key=lambda each: (-len(each.claims), each.id))


def author_of(claims: Claims, issuer: str) -> str:
    """Return the name that stands at commits of this token's run: its subject and its issuer."""
    return f"{PUBLISHER_MARK}{readable_subject(claims)} ({host_of_issuer(issuer)})"


def readable_subject(claims: Claims) -> str:
    """Return the subject as a line may have it: no issuer can put markup or a second line there."""
    return re.sub(r"[^!-;=?-~]", "-", claims["sub"])[:200]


def _same_name(value: Any, bound: str) -> bool:
    """Compare as GitHub and GitLab do with names: whatever the case; bound ones are ASCII."""
    return isinstance(value, str) and value.isascii() and value.lower() == bound.lower()


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


def _first_broken(checks: Sequence[Check]) -> str | None:
    return next((name for name, passed in checks if not passed), None)
