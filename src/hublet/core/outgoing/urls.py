"""Checks of a URL before its name is looked up: whether the hub would ever call it.

Parsers that disagree have opened holes elsewhere. So a host is taken in one spelling only, and
whatever a lenient resolver would read as an address is judged as that address.
"""

import re
from ipaddress import IPv4Address, IPv6Address

from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.core.outgoing.networks import Address, AddressPolicy, classify

MAX_URL = 2048

_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?:[/?#].*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?P<port>:[^:]*)?")
_PORT = re.compile(r":0*[1-9][0-9]{0,4}")
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
# As inet_aton and browsers read it; such a last label makes the whole host an address.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_LARGEST_PORT = 65535
_PARTS = 4


class UrlRefused(InvalidRequest):
    """`reason` is the sentence alone; the message names the field before it."""

    def __init__(self, reason: str, *, field: str = "url") -> None:
        super().__init__(f"{field}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a URL leads; the host is in ASCII and lower case, an IPv6 address without brackets."""

    secure: bool
    host: str
    port: int


def check_url(url: str, policy: AddressPolicy, *, field: str = "url") -> None:
    """Refuse a URL that this hub would never call, whatever its name resolves to."""
    try:
        parse_destination(url, policy)
    except UrlRefused as refusal:
        raise UrlRefused(refusal.reason, field=field) from None


def parse_destination(url: str, policy: AddressPolicy, *, max_length: int = MAX_URL) -> Destination:
    if len(url) > max_length:
        raise UrlRefused(f"a URL has at most {max_length} characters.")
    if not url.isprintable() or re.search(r"[\s\\]", url):
        raise UrlRefused("a URL has no spaces, control characters or backslashes.")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise UrlRefused("only URLs that begin with http:// or https:// are called.")
    scheme, authority = parts["scheme"].lower(), parts["authority"]
    if "@" in authority:
        # It would end up in logs, and parsers disagree about where it ends.
        raise UrlRefused("a URL must not hold a user name or password.")
    where = _AUTHORITY.fullmatch(authority)
    if where is None:
        raise UrlRefused("a URL needs one host, with an IPv6 address in brackets.")
    return Destination(
        secure=scheme == "https",
        port=_read_port(where["port"]) or _PORTS[scheme],
        host=_read_host(where["host"], policy),
    )


def _read_port(text: str | None) -> int | None:
    if text is None:
        return None
    if not _PORT.fullmatch(text) or int(text[1:]) > _LARGEST_PORT:
        raise UrlRefused(f"the port must be a number from 1 to {_LARGEST_PORT}.")
    return int(text[1:])


def _read_host(text: str, policy: AddressPolicy) -> str:
    if text.startswith("["):
        return _read_ipv6(text[1:-1], policy)
    if "%" in text:
        raise UrlRefused("the host must not be percent-encoded.")
    host = _to_ascii(text).lower()
    # A dot at the end says that the name is complete; it leads to the same place.
    bare = host.removesuffix(".")
    if not _NAME.fullmatch(bare):
        raise UrlRefused("the host is not a valid host name.")
    if _NUMBER.fullmatch(bare.rpartition(".")[2]):
        return _read_ipv4(host, bare, policy)
    if bare == "localhost" or bare.endswith(".localhost"):
        _refuse_unless_allowed(bare, IPv4Address("127.0.0.1"), policy)
    return host


def _to_ascii(host: str) -> str:
    if host.isascii():
        return host
    import idna  # noqa: PLC0415 - its tables are large, and few hosts need them.

    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        raise UrlRefused("the host is not a valid international name.") from None


def _read_ipv6(text: str, policy: AddressPolicy) -> str:
    try:
        # A zone ("%eth0") names an interface of this machine.
        address = IPv6Address(text if "%" not in text else "")
    except ValueError:
        raise UrlRefused("the brackets must hold an IPv6 address.") from None
    _refuse_unless_allowed(text.lower(), address, policy)
    return str(address)


def _read_ipv4(host: str, bare: str, policy: AddressPolicy) -> str:
    address = _lenient_ipv4(bare)
    if address is None:
        raise UrlRefused(f"{bare} is not a valid IPv4 address.")
    _refuse_unless_allowed(bare, address, policy)
    if host != str(address):
        raise UrlRefused(f"{host} must be written as {address}.")
    return host


def _lenient_ipv4(text: str) -> IPv4Address | None:
    """Read one to four numbers in decimal, octal or hexadecimal; the last fills what is left."""
    parts = text.split(".")
    if len(parts) > _PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return None
    try:
        *high, low = map(_parse_number, parts)
    except ValueError:
        return None
    room = 8 * (_PARTS - len(high))
    if any(part >> 8 for part in high) or low >> room:
        return None
    return IPv4Address(low + sum(part << 8 * (3 - place) for place, part in enumerate(high)))


def _parse_number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _refuse_unless_allowed(host: str, address: Address, policy: AddressPolicy) -> None:
    verdict = classify(address, policy)
    if not verdict.allowed:
        article = "an" if verdict.reason[0] in "aeiou" else "a"
        raise UrlRefused(
            f"{host} is {article} {verdict.reason} address, which this hub does not call unless outgoing.allow names it."
        )
