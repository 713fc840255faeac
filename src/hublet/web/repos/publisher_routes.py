"""HTTP for the trusted publishers of a repository: the workflows that write it without a secret."""

from collections.abc import Awaitable, Callable

from fastapi import Query, Response

from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.oauth.errors import InvalidPublisher
from hublet.oauth.publishers import service as publishers
from hublet.oauth.publishers.records import DEFAULT_ISSUERS, Provider, PublisherDraft
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.tokens.auth import actor_of
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import REFUSALS, go_to, render, status_of
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of

router = PageRouter()

_PUBLISHERS = f"{PAGE_REPO}/settings/trusted-publishers"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherPreset:
    """The form of a provider: its fields by the names of claims, each with a label and an example."""

    provider: Provider
    fields: tuple[tuple[str, str, str], ...]


_OPTIONAL_FIELDS = (
    ("branch", "Branch", "main"),
    ("environment", "Environment", "release"),
)
_PRESETS = {
    "github": PublisherPreset(
        provider=Provider.github,
        fields=(
            ("repository", "Repository at GitHub", "acme/engine"),
            ("workflow", "Workflow file", "release.yml"),
            *_OPTIONAL_FIELDS,
        ),
    ),
    "gitlab": PublisherPreset(
        provider=Provider.gitlab,
        fields=(
            ("project", "Project at GitLab", "acme/engine"),
            ("workflow", "Pipeline file", ".gitlab-ci.yml"),
            *_OPTIONAL_FIELDS,
        ),
    ),
    "custom": PublisherPreset(provider=Provider.custom, fields=()),
}


@router.get(_PUBLISHERS)
async def get_publishers_page(
    visit: SignedInVisit, address: PageRepo, provider: str = Query("github", max_length=20)
) -> Response:
    return await _show(visit, address, typed={"provider": provider})


@router.post(_PUBLISHERS)
async def add_publisher(visit: FreshVisit, address: PageRepo, form: FormFields) -> Response:
    """Let the repository trust a workflow."""

    async def add(conn: Connection, repo: Repo) -> None:
        draft = _draft_of(form, issuers=visit.settings.oauth.publisher_issuers)
        await publishers.add(conn, actor_of(visit.request, visit.person), repo, draft)

    return await _do(visit, address, form, add, toast="The workflow is trusted.")


@router.post(f"{_PUBLISHERS}/{{publisher_id}}/reset")
async def reset_publisher(
    visit: FreshVisit, address: PageRepo, publisher_id: str, form: FormFields
) -> Response:
    """Forget the ids that were pinned at the first use: the next exchange pins its own."""

    async def reset(conn: Connection, repo: Repo) -> None:
        found = await publishers.get(conn, repo, publisher_id)
        draft = PublisherDraft(
            provider=found.provider, issuer=found.issuer, claims=found.claims, pins={}
        )
        actor = actor_of(visit.request, visit.person)
        await publishers.change(conn, actor, repo, publisher_id, draft)

    return await _do(visit, address, form, reset, toast="The next run pins its ids.")


@router.post(f"{_PUBLISHERS}/{{publisher_id}}/delete")
async def delete_publisher(
    visit: FreshVisit, address: PageRepo, publisher_id: str, form: FormFields
) -> Response:
    async def delete(conn: Connection, repo: Repo) -> None:
        await publishers.remove(conn, actor_of(visit.request, visit.person), repo, publisher_id)

    return await _do(visit, address, form, delete, toast="The workflow is not trusted any more.")


def _draft_of(form: FormFields, *, issuers: tuple[str, ...]) -> PublisherDraft:
    preset = _PRESETS.get(form.get("provider", ""))
    if preset is None:
        raise InvalidPublisher("provider must be github, gitlab or custom.")
    provider = preset.provider
    claims = {name: form.get(name, "").strip() for name, _, _ in preset.fields}
    if not preset.fields:
        claims = _claims_of(form.get("claims", ""))
    return PublisherDraft(
        provider=provider,
        issuer=form.get("issuer") or _first_issuer(provider, issuers),
        claims={name: value for name, value in claims.items() if value},
        pins={},
    )


def _first_issuer(provider: Provider, issuers: tuple[str, ...]) -> str:
    default = DEFAULT_ISSUERS.get(provider)
    return default or next(iter(issuers), "")


def _issuers_for(preset: PublisherPreset, issuers: tuple[str, ...]) -> list[str]:
    """Return the issuers whose tokens a provider may have: not the one that is another's own."""
    others = {issuer for name, issuer in DEFAULT_ISSUERS.items() if name is not preset.provider}
    return [issuer for issuer in issuers if issuer not in others]


def _claims_of(text: str) -> dict[str, str]:
    """Read lines such as `sub=pipeline:7`."""
    claims: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or name.strip() in claims:
            raise InvalidPublisher("claims must be lines such as name=value, each name once.")
        claims[name.strip()] = value.strip()
    return claims


async def _do(
    visit: PageVisit,
    address: RepoAddress,
    form: FormFields,
    change: Callable[[Connection, Repo], Awaitable[None]],
    *,
    toast: str,
) -> Response:
    """Make a change, and show the page again with what was typed if it is refused."""
    try:
        async with visit.database.transaction() as conn:
            repo = await repos.get(conn, visit.person, address, Right.manage)
            visit.check(form, f"{PURPOSE} {repo.id}")
            await change(conn, repo)
    except REFUSALS as error:
        return await _show(visit, address, typed=dict(form), problem=error)
    return go_to(visit, f"{path_of(repo)}/settings/trusted-publishers", toast=toast)


async def _show(
    visit: PageVisit,
    address: RepoAddress,
    *,
    typed: dict[str, str],
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        rows = await publishers.list_of(conn, head.repo)
    issuers = visit.settings.oauth.publisher_issuers
    # Another issuer can only be chosen where the operator named one.
    offered = {name: each for name, each in _PRESETS.items() if _issuers_for(each, issuers)}
    first = next(iter(offered.values()), _PRESETS["github"])
    preset = offered.get(typed.get("provider", ""), first)
    return await render(
        visit,
        "repos/publishers.html",
        frame=head.frame,
        status=200 if problem is None else status_of(problem),
        head=head,
        rows=rows,
        preset=preset,
        presets=[each.provider for each in offered.values()],
        issuers=_issuers_for(preset, issuers),
        resource=f"{head.repo.type.prefix}{head.repo.full_name}",
        endpoint=visit.settings.base_url,
        typed=typed,
        problem=None if problem is None else problem.message,
    )
