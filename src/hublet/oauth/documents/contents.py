"""What a client ID metadata document must say, and what is taken from it."""

from collections.abc import Mapping
from typing import Any

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.documents.addresses import objection_to_link, origin_of
from hublet.oauth.documents.errors import DocumentRefused
from hublet.oauth.metadata import (
    InvalidMetadata,
    check_grants,
    check_no_private_keys,
    name_in,
    object_in,
    scopes_in,
    strings_in,
)
from hublet.oauth.redirect_uris import RedirectUriRefused, check_registrable
from hublet.tokens.records import Scope

MAX_REDIRECT_URIS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[Scope]
    client_uri: str | None
    logo_uri: str | None


def read_document(client_id: str, body: bytes, *, issuer: str) -> Document:
    """Check a document that lies at the address that is the client id."""
    try:
        stated = object_in(body, what="document")
        # Byte for byte: otherwise a site could speak for another one.
        if stated.get("client_id") != client_id:
            raise DocumentRefused("client_id must be the address of the document itself.")
        _check_public(stated)
        check_grants(stated)
        check_no_private_keys(stated)
        return Document(
            name=name_in(stated),
            redirect_uris=_redirect_uris(stated),
            scopes=scopes_in(stated),
            client_uri=_client_uri(stated, client_id, issuer=issuer),
            logo_uri=_link(stated, "logo_uri", issuer=issuer),
        )
    except InvalidMetadata as error:
        raise DocumentRefused(error.reason) from None


def _check_public(stated: Mapping[str, Any]) -> None:
    for field in ("client_secret", "client_secret_expires_at"):
        if field in stated:
            raise DocumentRefused(f"{field}: everybody can read it here, so there is none.")
    methods = stated.get("token_endpoint_auth_methods_supported")
    if isinstance(methods, list) and "none" in methods:
        return
    if stated.get("token_endpoint_auth_method", "none") != "none":
        raise DocumentRefused("token_endpoint_auth_method must be none.")


def _redirect_uris(stated: Mapping[str, Any]) -> tuple[str, ...]:
    uris = strings_in(stated, "redirect_uris")
    if not uris or len(uris) > MAX_REDIRECT_URIS:
        raise DocumentRefused(f"redirect_uris must list 1 to {MAX_REDIRECT_URIS} URIs.")
    for place, uri in enumerate(uris):
        try:
            check_registrable(uri, field=f"redirect_uris[{place}]")
        except RedirectUriRefused as refusal:
            raise DocumentRefused(refusal.message) from None
    return tuple(dict.fromkeys(uris))


def _client_uri(stated: Mapping[str, Any], client_id: str, *, issuer: str) -> str | None:
    """A page of another site says nothing about who is behind the app."""
    uri = _link(stated, "client_uri", issuer=issuer)
    return uri if uri is not None and origin_of(uri) == origin_of(client_id) else None


def _link(stated: Mapping[str, Any], field: str, *, issuer: str) -> str | None:
    """What is no address to fetch from is not shown; it is no reason to refuse an app."""
    uri = stated.get(field)
    if not isinstance(uri, str) or objection_to_link(uri, issuer=issuer):
        return None
    return uri
