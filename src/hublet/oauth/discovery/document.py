"""The discovery document of a hub, as a function of its address."""

from typing import Any

from pydantic import MISSING

from hublet.oauth.discovery.schemas import Discovery
from hublet.tokens.records import Scope

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
_SECRETS = ["client_secret_basic", "client_secret_post"]


def discovery_at(base_url: str, *, registration: bool) -> dict[str, Any]:
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
        token_endpoint_auth_methods_supported=[*_SECRETS, "none"],
        revocation_endpoint_auth_methods_supported=[*_SECRETS, "none"],
        introspection_endpoint_auth_methods_supported=_SECRETS,
        code_challenge_methods_supported=["S256"],
        prompt_values_supported=["none", "login", "consent", "select_account"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
        client_id_metadata_supported=True,
        claims_parameter_supported=False,
        request_parameter_supported=False,
        request_uri_parameter_supported=False,
    )
    return document.model_dump()
