"""Parameters of an authorization request, as an app sent them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, urlencode

from hublet.oauth.errors import UnreadableRequest

# A state of 8 KiB whose every byte is percent-encoded, and room for the rest.
MAX_QUERY_BYTES = 32_768
MAX_PARAMETERS = 100

# RFC 8707 lets an app name several resources; orgIds of our own are joined.
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
        """Read a query, or the body of a form."""
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
        """Return the names that stand twice and must not; unknown ones mean nothing anyway."""
        names = [name for name, _ in self.pairs if name in _KNOWN - _MAY_REPEAT]
        return sorted({name for name in names if names.count(name) > 1})

    def query(
        self, *, without: Collection[str] = (), adding: Mapping[str, str] | None = None
    ) -> str:
        kept = [(name, value) for name, value in self.pairs if name not in without]
        return urlencode([*kept, *(adding or {}).items()])
