"""Authorization of the MCP server: its metadata (RFC 9728), challenges, and who may call at all."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
from fastapi import Request

from hublet.core.config import Settings
from hublet.core.errors import AuthenticationNeeded, HubError, NotAllowed
from hublet.core.schema import Schema
from hublet.mcp.records import (
    FIRST_SCOPES,
    INFO_BY_NAME,
    MCP_PATH,
    SUPPORTED_SCOPES,
    Audience,
    ToolInfo,
)
from hublet.mcp.tools import missing_scopes
from hublet.tokens.auth import identify_if_given
from hublet.tokens.records import Caller

METADATA_PATH = "/.well-known/oauth-protected-resource"
_PORT = re.compile(r":[0-9]+$")


class ProtectedResource(Schema):
    """Where tokens for a resource come from (RFC 9728)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    resource_name: str
    resource_documentation: str


def describe_resource(base_url: str, path: str) -> ProtectedResource:
    """Describe the hub, or the part of it at this path."""
    return ProtectedResource(
        resource=f"{base_url}{path}",
        authorization_servers=[base_url],
        scopes_supported=sorted(SUPPORTED_SCOPES),
        bearer_methods_supported=["header"],
        resource_name="Hublet",
        resource_documentation=f"{base_url}/docs",
    )


class WrongHost(HubError):
    """A page of another site had its name lead here (DNS rebinding), or the hub has another name."""

    status = 421

    def __init__(self) -> None:
        super().__init__(
            "This name is not the hub's: the operator sets it with server.base_url, and a reverse "
            "proxy has to pass it on in the header Host."
        )


class WrongOrigin(NotAllowed):
    def __init__(self) -> None:
        super().__init__("Pages of other sites cannot use the MCP server.")


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse what a browser sends for a page of another site, also one that is rebound to this hub.

    A numeric address cannot be rebound, nor can localhost.
    """
    own = {settings.base_url, *settings.local_urls().values()}
    host = request.headers.get("host", "")
    if host not in {urlsplit(url).netloc for url in own} and not _is_literal(host):
        raise WrongHost
    origin = request.headers.get("origin")
    if origin is not None and origin not in own:
        raise WrongOrigin


def _is_literal(host: str) -> bool:
    name = _PORT.sub("", host).strip("[]")
    if name == "localhost":
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def authenticate(request: Request, *, base_url: str) -> Caller | None:
    """Return the caller, None without a token; challenge who has to sign in, or sends a bad token.

    With `?login` in the address somebody without a token is challenged at once: else an assistant
    would never begin to sign in.
    """
    try:
        caller = await identify_if_given(request, None)
    except AuthenticationNeeded as error:
        raise _challenged(error, base_url, error="invalid_token") from None
    if caller is not None and not caller.token.is_for(MCP_PATH):
        wrong = AuthenticationNeeded("The token was issued for another part of this hub.")
        raise _challenged(wrong, base_url, error="invalid_token")
    if caller is None and "login" in request.query_params:
        raise _challenged(AuthenticationNeeded("Sign in to use this address."), base_url)
    return caller


def check_scopes(
    body: bytes, caller: Caller | None, enabled: Iterable[str], *, base_url: str
) -> None:
    """Challenge who calls a tool that needs more than the token has, or a token at all.

    An app then asks the person for what is missing, and calls again.
    """
    info = _called_tool(body)
    if info is None or info.name not in enabled or info.audience is Audience.everybody:
        return
    if caller is None:
        needed = AuthenticationNeeded(f"{info.name} needs a token.")
        raise _challenged(needed, base_url, scopes=FIRST_SCOPES | info.scopes)
    if missing := missing_scopes(info, caller):
        lacking = NotAllowed(f"The token lacks the scope {' '.join(sorted(missing))}.")
        raise _challenged(lacking, base_url, error="insufficient_scope", scopes=info.scopes)


def _called_tool(body: bytes) -> ToolInfo | None:
    """Return the tool that a message calls; what is no message is refused later, by the protocol."""
    try:
        message: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return None
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return INFO_BY_NAME.get(name) if isinstance(name, str) else None


def _challenged(
    refusal: HubError,
    base_url: str,
    *,
    error: str = "",
    scopes: Iterable[str] = FIRST_SCOPES,
) -> HubError:
    """Return the refusal with a challenge that says where tokens come from (RFC 9728, 5.1)."""
    parts = [f'error="{error}"'] if error else []
    parts.append(f'scope="{" ".join(sorted(scopes))}"')
    parts.append(f'resource_metadata="{base_url}{METADATA_PATH}{MCP_PATH}"')
    refusal.headers["WWW-Authenticate"] = f"Bearer {', '.join(parts)}"
    return refusal
