"""HTTP for a person's access tokens: the list, and the form with the picker of scopes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastapi import Response
from pydantic import MISSING

from hublet.accounts.users import store as users
from hublet.core.clock import now, wire
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.tokens import service, store
from hublet.tokens.records import Scope, TokenRecord, TokenRole
from hublet.tokens.schemas import CreateOwnToken
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_TOKENS = "/settings/tokens"
# Days that a token may work, as the form offers them; 0 is for ever.
EXPIRIES = (7, 30, 90, 365, 0)
_DEFAULT_EXPIRY = 90
# Scopes that may hold for what one owner has; the others are about the person.
OWNED_SCOPES = (
    Scope.read_repos,
    Scope.write_repos,
    Scope.manage_repos,
    Scope.write_discussions,
    Scope.jobs,
    Scope.webhooks,
    Scope.read_collections,
    Scope.write_collections,
    Scope.read_endpoints,
    Scope.write_endpoints,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDraft:
    """What the form shows: from the address, or as it was typed."""

    name: str = ""
    role: str = TokenRole.read
    everywhere: frozenset[str] = frozenset()
    # By the name of an owner.
    scoped: Mapping[str, frozenset[str]]
    days: str = str(_DEFAULT_EXPIRY)

    def to_request(self) -> CreateOwnToken:
        """Return what the API takes; scopes count for a fine-grained token only."""
        if self.days not in {str(days) for days in EXPIRIES}:
            raise InvalidRequest("expires must be one of the choices.")
        days = int(self.days)
        is_fine_grained = self.role == TokenRole.fine_grained
        scoped = [
            {"owner": owner, "scopes": sorted(scopes)}
            for owner, scopes in self.scoped.items()
            if scopes
        ]
        return read_as(
            CreateOwnToken,
            name=self.name,
            role=self.role,
            scopes=sorted(self.everywhere) if is_fine_grained else MISSING,
            scoped=scoped if is_fine_grained else MISSING,
            expiresAt=wire(now() + timedelta(days=days)) if days else MISSING,
        )


@router.get(_TOKENS)
async def get_tokens_page(visit: SignedInVisit) -> Response:
    return await _show_list(visit)


@router.get(f"{_TOKENS}/new")
async def get_new_token_page(visit: FreshVisit) -> Response:
    """Show the form, filled in from the address: `name`, `role`, `scopes`, `owner`, `expires`."""
    query = visit.request.query_params
    scopes = frozenset(",".join(query.getlist("scopes")).split(",")) & frozenset(Scope)
    owner = query.get("owner", "")
    role = query.get("role") or query.get("tokenType") or ("fineGrained" if scopes else "read")
    draft = TokenDraft(
        name=query.get("name", ""),
        role=role if role in set(TokenRole) else TokenRole.read,
        everywhere=frozenset() if owner else scopes,
        scoped={owner: scopes} if owner else {},
        days=query.get("expires", str(_DEFAULT_EXPIRY)),
    )
    return await _show_form(visit, draft)


@router.post(_TOKENS)
async def create_token(visit: FreshVisit, form: FormFields) -> Response:
    """Create a token, and show its value on the page that follows, this once."""
    visit.check(form, _TOKENS)
    draft = _read_draft(form)
    try:
        async with visit.database.transaction() as conn:
            token, value = await service.issue_own(
                conn, user_id=visit.person.user_id, request=draft.to_request()
            )
    except REFUSALS as error:
        return await _show_form(visit, draft, problem=error)
    # Not a redirect: no other page may know the value.
    return await _show_list(visit, created=token, value=value)


@router.post(f"{_TOKENS}/{{token_id}}/revoke")
async def revoke_token(visit: SignedInVisit, token_id: str, form: FormFields) -> Response:
    visit.check(form, _TOKENS)
    async with visit.database.transaction() as conn:
        await service.revoke(conn, token_id=token_id, user_id=visit.person.user_id, reason="owner")
    return go_to(visit, _TOKENS, toast="The token does not work any more.")


def _read_draft(form: FormFields) -> TokenDraft:
    """Read the form: `scope` holds everywhere, `scope of NAME` for what NAME owns."""
    prefix = "scope of "
    owners = [name.removeprefix(prefix) for name in form if name.startswith(prefix)]
    return TokenDraft(
        name=form.get("name", "").strip(),
        role=form.get("role", ""),
        everywhere=frozenset(form.getlist("scope")),
        scoped={owner: frozenset(form.getlist(prefix + owner)) for owner in owners},
        days=form.get("expires", ""),
    )


async def _show_list(
    visit: PageVisit, *, created: TokenRecord | None = None, value: str | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_TOKENS)
        tokens = await store.list_of(conn, user_id=visit.person.user_id)
    return await render(
        visit,
        "account/tokens.html",
        frame=frame,
        # A page with a value is one that no cache keeps.
        status=200 if created is None else 201,
        form_token=visit.form_token(_TOKENS),
        tokens=tokens[::-1],
        now=now(),
        created=created,
        value=value,
    )


async def _show_form(
    visit: PageVisit, draft: TokenDraft, *, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_TOKENS)
        memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    values: dict[str, Any] = {
        "owners": [visit.person.user_name, *(each.organization.name for each in memberships)],
        "expiries": EXPIRIES,
        "owned_scopes": OWNED_SCOPES,
        "scopes": tuple(Scope),
    }
    return await render(
        visit,
        "account/new_token.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_TOKENS),
        draft=draft,
        problem=None if problem is None else problem.message,
        **values,
    )
