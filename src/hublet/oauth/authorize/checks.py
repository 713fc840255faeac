"""Checks of an authorization request, in the order in which they are made, and the parameters as
the app sent them.

Until the redirect URI is proven to be one of the app's, an error is shown on a page of the hub. From
then on it is sent to the app.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, urlencode

from hublet.core.ids import is_object_id
from hublet.oauth.authorize.codes import is_challenge
from hublet.oauth.authorize.records import AuthorizationRequest, Prompt
from hublet.oauth.errors import (
    ClientIdNeeded,
    OAuthError,
    RedirectedError,
    RedirectUriNeeded,
    RedirectUriUnknown,
    UnreadableRequest,
    invalid_request,
)
from hublet.oauth.records import OAuthApp, RedirectTarget
from hublet.oauth.redirect_uris import describe_difference, matches
from hublet.oauth.scopes import resource_of, scopes_requested_by

# A state of 8 KiB whose every byte is percent-encoded, and room for the rest.
MAX_QUERY_BYTES = 32_768
MAX_PARAMETERS = 100
MAX_STATE_BYTES = 8192
MAX_NONCE_LENGTH = 512
MAX_ORGANIZATIONS = 20

_SECONDS = re.compile(r"[0-9]{1,10}")
# RFC 8707 lets an app name several resources; the hub's own orgIds are joined.
_MAY_REPEAT = frozenset({"orgIds", "resource"})
_KNOWN = frozenset(
    {
        "client_id",
        "redirect_uri",
        "response_type",
        "response_mode",
        "scope",
        "state",
        "nonce",
        "code_challenge",
        "code_challenge_method",
        "prompt",
        "max_age",
        "request",
        "request_uri",
        "registration",
        "signed_in_after",
    }
)


@dataclass(frozen=True, slots=True)
class AuthorizationParameters:
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, query: bytes) -> Self:
        """Parse a query, or the body of a form."""
        if len(query) > MAX_QUERY_BYTES:
            raise UnreadableRequest(f"it has more than {MAX_QUERY_BYTES} bytes")
        try:
            pairs = parse_qsl(
                query.decode(),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_PARAMETERS,
            )
        except UnicodeDecodeError:
            raise UnreadableRequest("it is not valid UTF-8") from None
        except ValueError:
            raise UnreadableRequest(f"it has more than {MAX_PARAMETERS} parameters") from None
        return cls(tuple(pairs))

    def find(self, name: str) -> str | None:
        """Return the value; RFC 6749, 3.1: a parameter without a value counts as left out."""
        return next((value for each, value in self.pairs if each == name), None) or None

    def all_of(self, name: str) -> list[str]:
        return [value for each, value in self.pairs if each == name and value]

    def repeated(self) -> list[str]:
        """Return the names that must not be repeated but are; unknown parameters are ignored."""
        names = [name for name, _ in self.pairs if name in _KNOWN - _MAY_REPEAT]
        return sorted({name for name in names if names.count(name) > 1})

    def query(
        self, *, without: Collection[str] = (), adding: Mapping[str, str] | None = None
    ) -> str:
        pairs = [(name, value) for name, value in self.pairs if name not in without]
        return urlencode([*pairs, *(adding or {}).items()])


def client_id_of(parameters: AuthorizationParameters) -> str:
    client_id = parameters.find("client_id")
    if client_id is None or "client_id" in parameters.repeated() or not client_id.isprintable():
        raise ClientIdNeeded
    return client_id


def check_request(
    app: OAuthApp, parameters: AuthorizationParameters, *, base_url: str
) -> AuthorizationRequest:
    target = RedirectTarget(redirect_uri=_redirect_uri(app, parameters))
    try:
        target = RedirectTarget(redirect_uri=target.redirect_uri, state=_state(parameters))
        _check_repetition(parameters)
        _check_response_type(parameters)
        _check_request_objects(parameters)
        resource = resource_of(parameters.all_of("resource"), base_url=base_url)
        return AuthorizationRequest(
            app=app,
            target=target,
            challenge=_challenge(app, parameters),
            scopes=scopes_requested_by(
                app, parameters.find("scope"), for_resource=resource is not None
            ),
            nonce=_nonce(parameters),
            prompts=_prompts(parameters),
            max_age=_seconds(parameters, "max_age"),
            signed_in_after=_seconds(parameters, "signed_in_after"),
            organization_ids=_organization_ids(parameters),
            resource=resource,
        )
    except OAuthError as error:
        raise RedirectedError(error.error, error.description, target=target) from None


def _redirect_uri(app: OAuthApp, parameters: AuthorizationParameters) -> str:
    requested = parameters.find("redirect_uri")
    if requested is None or "redirect_uri" in parameters.repeated():
        raise RedirectUriNeeded
    for registered in app.redirect_uris:
        if matches(registered, requested, dynamic_query=app.dynamic_query):
            return requested
    raise RedirectUriUnknown(
        requested, differences=[describe_difference(each, requested) for each in app.redirect_uris]
    )


def _state(parameters: AuthorizationParameters) -> str | None:
    states = [value for name, value in parameters.pairs if name == "state"]
    if len(states) > 1:
        raise invalid_request("state must not be repeated.")
    if states and len(states[0].encode()) > MAX_STATE_BYTES:
        raise invalid_request(f"state must have at most {MAX_STATE_BYTES} bytes.")
    return states[0] if states else None


def _check_repetition(parameters: AuthorizationParameters) -> None:
    if repeated := parameters.repeated():
        raise invalid_request(f"{', '.join(repeated)} must not be repeated.")


def _check_response_type(parameters: AuthorizationParameters) -> None:
    response_type = parameters.find("response_type")
    if response_type is None:
        raise invalid_request("response_type is required.")
    if response_type != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if parameters.find("response_mode") not in {None, "query"}:
        raise invalid_request("response_mode must be query.")


def _check_request_objects(parameters: AuthorizationParameters) -> None:
    for name in ("request", "request_uri", "registration"):
        if parameters.find(name) is not None:
            raise OAuthError(f"{name}_not_supported", f"{name} is not supported.")


def _challenge(app: OAuthApp, parameters: AuthorizationParameters) -> str | None:
    challenge, method = parameters.find("code_challenge"), parameters.find("code_challenge_method")
    if challenge is None:
        if method is not None:
            raise invalid_request("code_challenge_method needs a code_challenge.")
        if not app.confidential:
            raise invalid_request("code_challenge is required for an app without a secret.")
        return None
    # RFC 7636, 4.3: without a method it would be plain, which shows the verifier to everybody.
    if method != "S256":
        raise invalid_request("code_challenge_method must be S256.")
    if not is_challenge(challenge):
        raise invalid_request("code_challenge must be the SHA-256 of the verifier in base64url.")
    return challenge


def _nonce(parameters: AuthorizationParameters) -> str | None:
    nonce = parameters.find("nonce")
    if nonce is not None and (len(nonce) > MAX_NONCE_LENGTH or not nonce.isprintable()):
        raise invalid_request(f"nonce must have at most {MAX_NONCE_LENGTH} printable characters.")
    return nonce


def _prompts(parameters: AuthorizationParameters) -> frozenset[Prompt]:
    names = set((parameters.find("prompt") or "").split(" ")) - {""}
    if not names <= set(Prompt):
        raise invalid_request("prompt must be of none, login, consent and select_account.")
    if Prompt.none in names and len(names) > 1:
        raise invalid_request("prompt: none stands alone.")
    return frozenset(map(Prompt, names))


def _seconds(parameters: AuthorizationParameters, name: str) -> int | None:
    text = parameters.find(name)
    if text is not None and _SECONDS.fullmatch(text) is None:
        raise invalid_request(f"{name} must be a number of seconds.")
    return None if text is None else int(text)


def _organization_ids(parameters: AuthorizationParameters) -> frozenset[str]:
    ids = frozenset(each for text in parameters.all_of("orgIds") for each in text.split(","))
    if not all(map(is_object_id, ids)):
        raise invalid_request("orgIds must be ids of organizations, separated by commas.")
    if len(ids) > MAX_ORGANIZATIONS:
        raise invalid_request(f"orgIds must have at most {MAX_ORGANIZATIONS} organizations.")
    return ids
