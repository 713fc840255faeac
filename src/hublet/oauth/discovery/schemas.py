"""The discovery document on the wire."""

from typing import Any

from pydantic import MISSING

from hublet.core.schema import Schema


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
