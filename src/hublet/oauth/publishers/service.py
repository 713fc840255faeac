"""Rules of trusted publishers: who manages them, and the exchange of an ID token for a token of 15 minutes.

Who sends an ID token learns only whether it was accepted. Which check refused it stands in the log of the
hub, and in the audit log when the repository trusts the issuer.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, User, UserType
from hublet.accounts.users import store as users
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.core.logs import get_logger
from hublet.oauth.errors import (
    OAuthError,
    PublisherExists,
    PublisherNotFound,
    TooManyPublishers,
    invalid_grant,
    invalid_request,
)
from hublet.oauth.publishers import issuers, store
from hublet.oauth.publishers.issuers import InvalidIdToken
from hublet.oauth.publishers.records import (
    Publisher,
    PublisherDraft,
    author_of,
    broken_claim,
    broken_standard_claim,
    check_draft,
    host_of_issuer,
    most_specific,
    pins_of,
    readable_subject,
)
from hublet.repos import store as repos
from hublet.repos.git.objects import PUBLISHER_MARK
from hublet.repos.records import Repo, RepoAddress, RepoType
from hublet.tokens import service as tokens
from hublet.tokens.records import Scope, ScopedGrant

MAX_PUBLISHERS = 20
TOKEN_LIFE = timedelta(minutes=15)
# How long an exchanged ID token is remembered after it expired: longer than clocks may differ.
REMEMBERED_AFTER_EXPIRY = timedelta(seconds=60)

# A client whose exchange failed tries again at each of its calls.
EXCHANGES_OF_ADDRESS = RateLimit(name="publisher", quota=300, window_seconds=300)
EXCHANGES_OF_RESOURCE = RateLimit(name="publisher-resource", quota=600, window_seconds=300)
# Counted for an address too, so that a stranger cannot shut out the repository's own workflows.
REFUSALS = RateLimit(name="publisher-refusals", quota=30, window_seconds=300)

_RESOURCE = re.compile(
    r"(?:(?P<kind>models|datasets|spaces|kernels|buckets|containers)/)?"
    r"(?P<namespace>[^/\s]{1,100})/(?P<name>[^/\s]{1,100})"
)
_USER = re.compile(r"[^/\s]{1,100}")

log = get_logger("oauth")


async def list_of(conn: Reader, repo: Repo) -> list[Publisher]:
    return await store.list_of(conn, repo.id)


async def get(conn: Reader, repo: Repo, publisher_id: str) -> Publisher:
    publisher = await store.find(conn, publisher_id, repo_id=repo.id)
    if publisher is None:
        raise PublisherNotFound(publisher_id)
    return publisher


async def add(conn: Connection, actor: Actor, repo: Repo, draft: PublisherDraft) -> Publisher:
    """Let a repository trust a workflow; whoever may manage the repository may do so."""
    check_draft(draft, issuers=conn.hub.settings.oauth.publisher_issuers)
    await conn.lock(f"publishers of {repo.id}")
    existing = await store.list_of(conn, repo.id)
    if len(existing) >= MAX_PUBLISHERS:
        raise TooManyPublishers(MAX_PUBLISHERS)
    _check_unique(existing, draft)
    at = now()
    publisher = Publisher(
        id=new_object_id(),
        repo_id=repo.id,
        provider=draft.provider,
        issuer=draft.issuer,
        claims=draft.claims,
        pins=draft.pins,
        creator_id=actor.id or "",
        creator_name=actor.name,
        created_at=at,
        updated_at=at,
    )
    await users.add(conn, _account_of(publisher), password_hash=None)
    await store.add(conn, publisher)
    await _write_audit(conn, repo, actor, "trusted-publisher.add", publisher)
    return publisher


def _account_of(publisher: Publisher) -> User:
    """Return the author of its commits: an account without a name in the space of names."""
    subject = publisher.claims.get(publisher.provider.subject_claim or "", "")
    name = f"{PUBLISHER_MARK}{host_of_issuer(publisher.issuer)} {subject}".rstrip()
    return User(
        id=publisher.id,
        name=name,
        fullname="Trusted publisher",
        type=UserType.service,
        created_at=publisher.created_at,
    )


async def change(
    conn: Connection, actor: Actor, repo: Repo, publisher_id: str, draft: PublisherDraft
) -> Publisher:
    """Replace what a publisher is bound to, its pinned ids too, and revoke the tokens that it has."""
    check_draft(draft, issuers=conn.hub.settings.oauth.publisher_issuers)
    await conn.lock(f"publishers of {repo.id}")
    publisher = await get(conn, repo, publisher_id)
    others = [each for each in await store.list_of(conn, repo.id) if each.id != publisher.id]
    _check_unique(others, draft)
    changed = replace(
        publisher,
        provider=draft.provider,
        issuer=draft.issuer,
        claims=draft.claims,
        pins=draft.pins,
        updated_at=now(),
    )
    await store.update(conn, changed)
    await tokens.revoke_of_user(conn, publisher.id, reason="publisher")
    await _write_audit(conn, repo, actor, "trusted-publisher.update", changed)
    return changed


def _check_unique(existing: list[Publisher], draft: PublisherDraft) -> None:
    for each in existing:
        if (each.issuer, dict(each.claims)) == (draft.issuer, dict(draft.claims)):
            raise PublisherExists(each.id)


async def remove(conn: Connection, actor: Actor, repo: Repo, publisher_id: str) -> None:
    """Remove a publisher with the tokens that it has."""
    publisher = await get(conn, repo, publisher_id)
    await _remove(conn, publisher)
    await _write_audit(conn, repo, actor, "trusted-publisher.remove", publisher)


async def remove_of_repo(conn: Connection, repo_id: str) -> None:
    """Remove the publishers of a repository that is deleted."""
    for publisher in await store.list_of(conn, repo_id):
        await _remove(conn, publisher)


async def _remove(conn: Connection, publisher: Publisher) -> None:
    await tokens.revoke_of_user(conn, publisher.id, reason="publisher")
    await store.remove(conn, publisher.id)


async def note_departure(conn: Connection, organization_id: str, user_id: str) -> None:
    """Write into the audit log which publishers stay of a member who is gone.

    They belong to the repositories, so they go on; somebody should look at each of them once.
    """
    for publisher, repo_name in await store.list_created_by(
        conn, user_id, organization_id=organization_id
    ):
        await audit.record(
            conn, organization_id, Actor(id=None, name="hub"), "trusted-publisher.creator-left",
            target=repo_name,
            details={"publisher_id": publisher.id, "publisher": publisher.summary,
                     "creator": publisher.creator_name},
        )  # fmt: skip


async def _write_audit(
    conn: Connection,
    repo: Repo,
    actor: Actor,
    action: str,
    publisher: Publisher,
    **details: str,
) -> None:
    """Write a line for the owner's organization, or for the hub where a user owns the repository."""
    told: dict[str, Any] = {
        "type": repo.type,
        "publisher_id": publisher.id,
        "publisher": publisher.summary,
        **details,
    }
    if repo.owner.is_organization:
        await audit.record(conn, repo.owner_id, actor, action, target=repo.full_name, details=told)
    else:
        await audit.record_for_hub(conn, actor, action, target=repo.full_name, details=told)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """An ID token that its issuer signed for this hub, and that is valid now."""

    issuer: str
    claims: Mapping[str, Any]
    # What makes it this very token.
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedToken:
    value: str
    seconds: int
    publisher_id: str


def parse_resource(text: str) -> RepoAddress:
    """Read `owner/name`, `datasets/owner/name` and the like, as the public client sends them."""
    found = _RESOURCE.fullmatch(text)
    if found is None:
        if _USER.fullmatch(text):
            # A bare user name is valid on the public service; no user of this hub has publishers.
            raise _refusal()
        raise invalid_request("resource must look like owner/name or datasets/owner/name.")
    kind = (found["kind"] or "models").removesuffix("s")
    return RepoAddress(type=RepoType(kind), namespace=found["namespace"], name=found["name"])


def _refusal() -> OAuthError:
    return invalid_grant("The ID token is not accepted for this resource.")


def count_exchange(limiter: Limiter, resource: RepoAddress, *, address: str) -> None:
    """Count an attempt; it counts as refused until `refund_refusal`."""
    name = _limit_key(resource)
    raise_when_exceeded(limiter.count(EXCHANGES_OF_ADDRESS, address))
    raise_when_exceeded(limiter.count(REFUSALS, f"{address} {name}"))
    raise_when_exceeded(limiter.count(EXCHANGES_OF_RESOURCE, name))


def refund_refusal(limiter: Limiter, resource: RepoAddress, *, address: str) -> None:
    limiter.refund(REFUSALS, f"{address} {_limit_key(resource)}")


def _limit_key(resource: RepoAddress) -> str:
    return f"{resource.type} {resource.full_name.lower()}"


async def verify(database: Database, id_token: str) -> VerifiedToken:
    """Check everything about an ID token that has nothing to do with a repository."""
    try:
        return await _verify(database, id_token)
    except InvalidIdToken as error:
        log.info("ID token refused", reason=error.reason)
        raise _refusal() from None


async def _verify(database: Database, id_token: str) -> VerifiedToken:
    settings = database.hub.settings
    header, unverified = issuers.read_unverified(id_token)
    key_id, issuer = issuers.check_header(header), unverified.get("iss")
    # The hub issues ID tokens itself, to apps: none of them may come back as a workflow's.
    if issuer not in settings.oauth.publisher_issuers or issuer == settings.base_url:
        raise InvalidIdToken("iss")
    async with database.read() as conn:
        if not await store.is_issuer_used(conn, issuer):
            raise InvalidIdToken("iss")
    key = await issuers.keys_of(database).find(issuer, key_id)
    if key is None:
        raise InvalidIdToken("kid")
    claims = issuers.check_signature(id_token, header, key)
    broken = broken_standard_claim(claims, audience=settings.base_url, at=now().timestamp())
    if claims.get("iss") != issuer or broken is not None:
        raise InvalidIdToken(broken or "iss")
    return VerifiedToken(issuer=issuer, claims=claims, digest=_digest(id_token, issuer, claims))


def _digest(id_token: str, issuer: str, claims: Mapping[str, Any]) -> str:
    # Without an id of its own a token is what was signed: some signatures can be written in two ways.
    own = claims.get("jti") or id_token.rpartition(".")[0]
    return sha256(f"{issuer}\n{own}".encode()).hexdigest()


async def exchange(
    token: VerifiedToken, resource: RepoAddress, address: str, conn: Connection
) -> ExchangedToken | OAuthError:
    """Issue a token for the repository that trusts this run, or refuse; both are in the audit log."""
    repo = await repos.find_by_name(conn, resource)
    # The same steps for a repository that does not exist, is private or trusts nobody.
    repo_id = "" if repo is None else repo.id
    await conn.lock(f"publishers of {repo_id}")
    candidates = most_specific(await store.list_of(conn, repo_id, issuer=token.issuer))
    if repo is None or not candidates:
        log.info("ID token refused", reason="no publisher", resource=resource.full_name)
        return _refusal()
    broken = [broken_claim(each, token.claims) for each in candidates]
    publisher = candidates[broken.index(None) if None in broken else 0]
    reason = await _reason_to_refuse(conn, token, repo, broken)
    author = author_of(token.claims, token.issuer)
    await _write_audit(
        conn,
        repo,
        Actor(id=None if reason else publisher.id, name=author, address=address),
        "trusted-publisher.exchange",
        publisher,
        subject=readable_subject(token.claims),
        result="issued" if reason is None else f"refused: {reason}",
    )
    return _refusal() if reason else await _issue(conn, token, repo, publisher, author)


async def _reason_to_refuse(
    conn: Connection, token: VerifiedToken, repo: Repo, broken: list[str | None]
) -> str | None:
    if None not in broken:
        return broken[0]
    owner = None if repo.owner.is_organization else await users.find(conn, repo.owner_id)
    if owner is not None and owner.disabled_at is not None:
        return "owner"
    kept = timedelta(seconds=float(token.claims["exp"])) + REMEMBERED_AFTER_EXPIRY
    expires_at = int(kept.total_seconds() * 1_000_000)
    is_first = await store.claim_id_token(conn, token.digest, expires_at=expires_at)
    return None if is_first else "jti"


async def _issue(
    conn: Connection, token: VerifiedToken, repo: Repo, publisher: Publisher, author: str
) -> ExchangedToken:
    # The ids of the first use are pinned: who gets the name later has others.
    pins = pins_of(publisher, token.claims)
    await store.set_used(conn, publisher.id, pins=pins, subject=readable_subject(token.claims))
    value = await tokens.issue_to_publisher(
        conn,
        publisher_id=publisher.id,
        name=author,
        grant=ScopedGrant(
            entity_id=repo.id,
            entity_type=repo.type,
            entity_name=repo.full_name,
            scopes=frozenset({Scope.write_repos}),
        ),
        expires_at=now() + TOKEN_LIFE,
    )
    return ExchangedToken(
        value=value, seconds=int(TOKEN_LIFE.total_seconds()), publisher_id=publisher.id
    )
