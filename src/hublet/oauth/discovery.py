"""Discovery document of the hub (OpenID Connect Discovery, RFC 8414), built from its address."""

from typing import Any

from pydantic import MISSING

from hublet.core.schema import Schema
from hublet.tokens.records import Scope


class Discovery(Schema):
    """OpenID Connect Discovery and RFC 8414 in one document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    device_authorization_endpoint: str
    revocation_endpoint: str
    introspection_endpoint: str
    end_session_endpoint: str
    # Absent when apps cannot register by themselves here.
    registration_endpoint: str | MISSING = MISSING
    service_documentation: str
    scopes_supported: list[str]
    claims_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    prompt_values_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool
    # The older name of the same, which the public service has.
    client_id_metadata_supported: bool
    claims_parameter_supported: bool
    request_parameter_supported: bool
    request_uri_parameter_supported: bool


class Jwks(Schema):
    """The public keys that check ID tokens (RFC 7517)."""

    keys: list[dict[str, Any]]


_GRANTS = [
    "authorization_code",
    "refresh_token",
    "urn:ietf:params:oauth:grant-type:device_code",
    "urn:ietf:params:oauth:grant-type:token-exchange",
]
_CLAIMS = [
    "sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "at_hash", "sid", "name",
    "preferred_username", "profile", "picture", "email", "email_verified", "isPro", "canPay",
    "orgs",
]  # fmt: skip
_SECRET_METHODS = ["client_secret_basic", "client_secret_post"]


def discovery_document(
    base_url: str, *, registration: bool, documents: bool = True
) -> dict[str, Any]:
    """Return the document of the hub at this address."""
    oauth = f"{base_url}/oauth"
    document = Discovery(
        issuer=base_url,
        authorization_endpoint=f"{oauth}/authorize",
        token_endpoint=f"{oauth}/token",
        userinfo_endpoint=f"{oauth}/userinfo",
        jwks_uri=f"{oauth}/jwks",
        device_authorization_endpoint=f"{oauth}/device",
        revocation_endpoint=f"{oauth}/revoke",
        introspection_endpoint=f"{oauth}/introspect",
        end_session_endpoint=f"{oauth}/logout",
        registration_endpoint=f"{oauth}/register" if registration else MISSING,
        service_documentation=f"{base_url}/docs",
        scopes_supported=list(Scope),
        claims_supported=_CLAIMS,
        response_types_supported=["code"],
        response_modes_supported=["query"],
        grant_types_supported=_GRANTS,
        subject_types_supported=["public"],
        id_token_signing_alg_values_supported=["RS256"],
        token_endpoint_auth_methods_supported=[*_SECRET_METHODS, "none"],
        revocation_endpoint_auth_methods_supported=[*_SECRET_METHODS, "none"],
        introspection_endpoint_auth_methods_supported=_SECRET_METHODS,
        code_challenge_methods_supported=["S256"],
        prompt_values_supported=["none", "login", "consent", "select_account"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=documents,
        client_id_metadata_supported=documents,
        claims_parameter_supported=False,
        request_parameter_supported=False,
        request_uri_parameter_supported=False,
    )
    return document.model_dump()
