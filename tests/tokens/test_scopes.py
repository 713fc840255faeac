"""Every scope of interface 5.3: what holds it, what it includes, and the type that asks for it."""

import httpx2
import pytest
from fastapi import APIRouter, FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from hublet.tokens import auth, service
from hublet.tokens.records import (
    Caller,
    Grants,
    Scope,
    ScopedGrant,
    TokenRole,
    scopes_of,
    with_included,
)
from people import a_user, sign_in

TYPES = {
    Scope.openid: auth.OpenIdUser,
    Scope.profile: auth.ProfileReader,
    Scope.email: auth.EmailReader,
    Scope.read_billing: auth.BillingReader,
    Scope.read_memberships: auth.MembershipReader,
    Scope.read_repos: auth.RepoReader,
    Scope.gated_repos: auth.GatedRepoReader,
    Scope.contribute_repos: auth.RepoContributor,
    Scope.write_repos: auth.RepoWriter,
    Scope.manage_repos: auth.RepoManager,
    Scope.read_collections: auth.CollectionReader,
    Scope.write_collections: auth.CollectionWriter,
    Scope.inference_api: auth.InferenceUser,
    Scope.read_endpoints: auth.EndpointReader,
    Scope.write_endpoints: auth.EndpointWriter,
    Scope.jobs: auth.JobRunner,
    Scope.webhooks: auth.WebhookManager,
    Scope.write_discussions: auth.DiscussionWriter,
}


def test_the_interface_names_eighteen_scopes_and_each_has_a_type() -> None:
    assert len(Scope) == 18
    assert TYPES.keys() == set(Scope)


@pytest.fixture
async def guarded(app: FastAPI) -> httpx2.AsyncClient:
    """A hub with a route for each scope that answers whoever holds it."""
    router = APIRouter()
    for scope, caller_type in TYPES.items():
        _guard(router, scope, caller_type)
    app.include_router(router)
    transport = httpx2.ASGITransport(app=with_edge(app))
    return httpx2.AsyncClient(transport=transport, base_url="http://hub.test")


def _guard(router: APIRouter, scope: Scope, caller_type: object) -> None:
    async def answer(caller: Caller) -> str:
        return caller.user_name

    answer.__annotations__["caller"] = caller_type
    router.add_api_route(f"/api/guarded/{scope}", answer)


@pytest.mark.parametrize("scope", Scope)
async def test_a_token_with_just_this_scope_gets_in_and_one_without_does_not(
    guarded: httpx2.AsyncClient, database: Database, scope: Scope
) -> None:
    holder = await sign_in(database, "ada", scopes=[scope])
    others = [s for s in Scope if scope not in with_included(frozenset({s}))]
    outsider = await sign_in(database, "bob", scopes=others)

    let_in = await guarded.get(f"/api/guarded/{scope}", headers=holder)
    kept_out = await guarded.get(f"/api/guarded/{scope}", headers=outsider)

    assert let_in.json() == "ada"
    assert kept_out.status_code == 403
    assert kept_out.json() == {"error": f"The token lacks the scope {scope}."}
    assert kept_out.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="{scope}"'
    )


@pytest.mark.parametrize(
    ("scope", "included"),
    [
        ("manage-repos", {"manage-repos", "write-repos", "read-repos"}),
        ("write-repos", {"write-repos", "read-repos"}),
        ("read-repos", {"read-repos"}),
        ("contribute-repos", {"contribute-repos"}),
        ("gated-repos", {"gated-repos"}),
        ("write-collections", {"write-collections", "read-collections"}),
        ("write-endpoints", {"write-endpoints", "read-endpoints"}),
    ],
)
def test_what_a_scope_includes(scope: str, included: set[str]) -> None:
    assert with_included(frozenset({Scope(scope)})) == included


def test_a_write_token_holds_every_scope() -> None:
    assert scopes_of(TokenRole.write, Grants()) == set(Scope)


def test_a_read_token_holds_nothing_that_changes_anything() -> None:
    assert scopes_of(TokenRole.read, Grants()) == {
        "openid", "profile", "email", "read-billing", "read-memberships", "read-repos",
        "gated-repos", "read-collections", "inference-api", "read-endpoints",
    }  # fmt: skip


async def test_a_narrow_grant_holds_only_where_it_was_given(database: Database) -> None:
    grants = Grants(
        everywhere=frozenset({Scope.jobs}),
        scoped=(
            ScopedGrant(
                entity_id="a" * 24,
                entity_type="org",
                entity_name="engines",
                scopes=frozenset({Scope.write_repos}),
            ),
        ),
    )
    caller = await a_caller(database, grants)

    assert caller.may(Scope.read_repos, on="a" * 24)
    assert not caller.may(Scope.read_repos, on="b" * 24)
    assert caller.may(Scope.jobs, on="b" * 24)
    assert not caller.may(Scope.webhooks, on="a" * 24)


async def a_caller(database: Database, grants: Grants) -> Caller:
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        _, value = await service.issue(
            conn, user_id=user.id, name="x", role=TokenRole.fine_grained, grants=grants
        )
    async with database.read() as conn:
        caller = await service.find_caller(conn, value)
    assert caller is not None
    return caller
