"""Form of an app: its fields, as they stand in a page and as the API's own shapes."""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from hublet.core.errors import InvalidRequest
from hublet.core.http.validation import describe_problems
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.apps.schemas import CreateApp, UpdateApp
from hublet.oauth.records import OAuthApp
from hublet.tokens.records import Scope

_Shape = TypeVar("_Shape", bound=BaseModel)

# What is ticked before anybody has chosen.
_DEFAULT_SCOPES = frozenset({Scope.openid, Scope.profile})


class ApplicationFormRefused(InvalidRequest):
    """The fields break a rule of the API's own shapes, which the message tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationForm:
    name: str = ""
    # One in each line.
    redirect_uris: str = ""
    client_uri: str = ""
    scopes: frozenset[str] = _DEFAULT_SCOPES
    dynamic_query: bool = False
    # The name of the organization that a new app is bound to; empty for none.
    organization: str = ""

    @classmethod
    def of_app(cls, app: OAuthApp) -> Self:
        return cls(
            name=app.name,
            redirect_uris="\n".join(app.redirect_uris),
            client_uri=app.client_uri or "",
            scopes=frozenset(app.scopes),
            dynamic_query=app.dynamic_query,
        )

    @classmethod
    def of_fields(cls, fields: Iterable[tuple[str, str]]) -> Self:
        pairs = list(fields)
        given = dict(pairs)
        return cls(
            name=given.get("name", ""),
            redirect_uris=given.get("redirect_uris", ""),
            client_uri=given.get("client_uri", "").strip(),
            scopes=frozenset(value for name, value in pairs if name == "scope"),
            dynamic_query="dynamic_query" in given,
            organization=given.get("organization", ""),
        )

    def to_create(self) -> CreateApp:
        optional = {"clientUri": self.client_uri, "organization": self.organization}
        given = {name: value for name, value in optional.items() if value}
        return _validate(CreateApp, self._shared() | given)

    def to_update(self) -> UpdateApp:
        return _validate(UpdateApp, self._shared() | {"clientUri": self.client_uri or None})

    def _shared(self) -> dict[str, Any]:
        lines = (line.strip() for line in self.redirect_uris.splitlines())
        return {
            "name": self.name,
            "redirectUris": [line for line in lines if line],
            "scopes": sorted(self.scopes),
            "dynamicQuery": self.dynamic_query,
        }


def _validate(shape: type[_Shape], values: dict[str, Any]) -> _Shape:
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise ApplicationFormRefused(describe_problems(problems)) from None
