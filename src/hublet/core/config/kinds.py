"""Kinds of settings: the parser of a value, the words of its rule, the field that declares it."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hublet.core.dataclasses import dataclass

Network = IPv4Network | IPv6Network

_HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_LOOPBACK = r"(?:localhost|127\.0\.0\.1|\[::1\])"
_ADDRESS = r"[^<>@\s]+@[^<>@\s]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`words` complete the sentence "… must be"; `read` raises ValueError for all else."""

    words: str
    read: Callable[[object], Any]


def _read_text(value: object) -> str:
    text = str(value).strip() if isinstance(value, str | Path) else ""
    if not text or not text.isprintable():
        raise ValueError(value)
    return text


def _read_list(value: object) -> list[str]:
    if isinstance(value, str):
        value = value.split(",") if value.strip() else []
    if not isinstance(value, list | tuple):
        raise ValueError(value)  # noqa: TRY004 - a wrong value is one error, whatever is wrong.
    return [_read_text(str(part)) for part in cast("list[object]", value)]


def text_matching(words: str, pattern: str) -> Kind:
    def read(value: object) -> str:
        text = _read_text(value)
        if not re.fullmatch(pattern, text):
            raise ValueError(value)
        return text

    return Kind(words=words, read=read)


def number(low: float, high: float, of: type[int] | type[float] = float) -> Kind:
    def read(value: object) -> float:
        number = of(value) if isinstance(value, str) else value
        # To Python, True is a number, and an int is good where a float is wanted.
        if isinstance(number, bool) or not isinstance(number, int | of):
            raise ValueError(value)  # noqa: TRY004 - as above.
        if not low <= number <= high:
            raise ValueError(value)
        return of(number)

    noun = "a whole number" if of is int else "a number"
    return Kind(words=f"{noun} from {low} to {high}", read=read)


def one_of(table: Mapping[str, object]) -> Kind:
    def read(value: object) -> object:
        text = str(value).strip().lower()
        if text not in table:
            raise ValueError(value)
        return table[text]

    return Kind(words=f"one of {', '.join(table)}", read=read)


_MAX_PROCESSES = 256


def _read_processes(value: object) -> int:
    """Return how many; auto is one for each core that this process may use."""
    if str(value).strip().lower() == "auto":
        return min(len(os.sched_getaffinity(0)), _MAX_PROCESSES)
    return int(number(1, _MAX_PROCESSES, int).read(value))


def _read_base_url(value: object) -> str:
    url = _read_text(value).lower().removesuffix("/")
    # Looking at the port makes urlsplit check it, and the brackets of an IPv6 address.
    if not re.fullmatch(f"https?://{_HOST}", url) or urlsplit(url).port == 0:
        raise ValueError(value)
    return url


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorSize:
    """Share of the machine that a job of a flavor gets."""

    name: str
    cores: float
    memory_bytes: int
    # Each is for one job at a time.
    devices: tuple[str, ...] = ()
    # Of a cluster: graphics cards, and labels of the nodes that its jobs may run on.
    gpus: int = 0
    node_labels: tuple[tuple[str, str], ...] = ()


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_MOST_GPUS = 64
_UNITS = {"M": 2**20, "G": 2**30}


def _read_flavors(value: object) -> tuple[FlavorSize, ...]:
    sizes = tuple(map(_read_flavor, _read_list(value)))
    if len({size.name for size in sizes}) < len(sizes):
        raise ValueError(value)
    return sizes


def _read_flavor(text: str) -> FlavorSize:
    match = re.fullmatch(r"([a-z0-9-]+)=([0-9]+(?:\.[0-9]+)?):([1-9][0-9]*)([MG])(?::(.+))?", text)
    if match is None or not float(match[2]):
        raise ValueError(text)
    devices, gpus, node_labels = _read_extras(match[5] or "")
    return FlavorSize(
        name=match[1],
        cores=float(match[2]),
        memory_bytes=int(match[3]) * _UNITS[match[4]],
        devices=tuple(map(_read_device, devices.split("+"))) if devices else (),
        gpus=gpus,
        node_labels=node_labels,
    )


def _read_extras(text: str) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    """Return devices, graphics cards and labels of nodes: `/dev/…`, `gpu=n`, `node=label:value`."""
    labels = list[tuple[str, str]]()
    while match := re.search(rf":?node=({_LABEL}):({_LABEL})$", text):
        labels.insert(0, (match[1], match[2]))
        text = text[: match.start()]
    rest, _, gpus = text.rpartition("gpu=")
    if not gpus or not gpus.isdigit():
        return text, 0, tuple(labels)
    if not 0 < int(gpus) <= _MOST_GPUS:
        raise ValueError(text)
    return rest.removesuffix(":"), int(gpus), tuple(labels)


def _read_cluster_labels(value: object) -> tuple[str, ...]:
    labels = tuple(_read_list(value))
    if not all(re.fullmatch(f"{_LABEL}={_LABEL}", label) for label in labels):
        raise ValueError(value)
    return labels


def _read_cluster_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", text):
        raise ValueError(text)
    return text


def _read_device(text: str) -> str:
    if not re.fullmatch(r"/dev(?:/[\w.-]+)+", text) or ".." in text.split("/"):
        raise ValueError(text)
    return text


def _read_devices(value: object) -> tuple[str, ...]:
    return tuple(map(_read_device, _read_list(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """Where the images of a name lie on this machine."""

    # As in a shell: * stands for anything.
    pattern: str
    # A folder or a .tar, of a root or of an OCI layout, or the word host.
    target: str


def _read_images(value: object) -> tuple[ImageSource, ...]:
    pairs = [text.partition("=") for text in _read_list(value)]
    sources = tuple(
        ImageSource(pattern=pattern.strip(), target=target.strip()) for pattern, _, target in pairs
    )
    if not all(source.pattern and source.target for source in sources):
        raise ValueError(value)
    return sources


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRule:
    """A registry that jobs may pull images from."""

    # In lower case, as in the name of an image; * stands for anything.
    pattern: str
    # Whether it is spoken to without TLS.
    is_plain: bool = False

    @property
    def is_exact(self) -> bool:
        return "*" not in self.pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryMirror:
    """Where the images of a registry are asked for first."""

    host: str
    # With a path if the mirror has several registries.
    url: str


def _read_registries(value: object) -> tuple[RegistryRule, ...]:
    rules = list[RegistryRule]()
    for text in _read_list(value):
        host = text.lower().removeprefix("http://")
        is_plain = host != text.lower()
        if not re.fullmatch(rf"\*(?:\.[a-z0-9.-]+)?|{_HOST}", host) or (is_plain and "*" in host):
            raise ValueError(value)
        rules.append(RegistryRule(pattern=host, is_plain=is_plain))
    return tuple(rules)


def _read_mirrors(value: object) -> tuple[RegistryMirror, ...]:
    mirrors = list[RegistryMirror]()
    for text in _read_list(value):
        host, _, url = text.partition("=")
        host, url = host.strip().lower(), url.strip().removesuffix("/")
        if not re.fullmatch(_HOST, host):
            raise ValueError(value)
        if not re.fullmatch(rf"https?://{_HOST}(?:/[a-z0-9._/-]+)?", url):
            raise ValueError(value)
        mirrors.append(RegistryMirror(host=host, url=url))
    return tuple(mirrors)


def _read_issuers(value: object) -> tuple[str, ...]:
    issuers = tuple(_read_list(value))
    pattern = rf"(?:https://{_HOST}|http://{_LOOPBACK}(?::[0-9]{{1,5}})?)(?:/[A-Za-z0-9._~/-]*)?"
    if not all(re.fullmatch(pattern, issuer) for issuer in issuers):
        raise ValueError(value)
    return issuers


def _read_range(value: object) -> IPv4Network:
    network = IPv4Network(_read_text(str(value)))
    # A network of jobs has 254 addresses.
    if network.prefixlen > 24 or not network.is_private:  # noqa: PLR2004 - as said.
        raise ValueError(value)
    return network


def _read_key_ring(value: object) -> str:
    entries = _read_list(value)
    ids = {entry.partition(":")[0] for entry in entries}
    right = [re.fullmatch(r"[A-Za-z0-9_-]{1,32}:[A-Za-z0-9_-]{43}=?", entry) for entry in entries]
    if not entries or not all(right) or len(ids) < len(entries):
        raise ValueError(len(entries))
    return ",".join(entries)


FLAG = one_of(
    {"true": True, "false": False, "yes": True, "no": False}
    | {"on": True, "off": False, "1": True, "0": False}
)
NETWORKS = Kind(
    words="a list of IP networks such as 10.0.0.0/8",
    read=lambda value: tuple(map(ip_network, _read_list(value))),
)
IPV4_NETWORKS = Kind(
    words="a list of IPv4 networks such as 10.0.0.0/8",
    read=lambda value: tuple(map(IPv4Network, _read_list(value))),
)
IPV4_ADDRESSES = Kind(
    words="a list of IPv4 addresses such as 10.0.0.53",
    read=lambda value: tuple(map(IPv4Address, _read_list(value))),
)
PRIVATE_RANGE = Kind(
    words="a private IPv4 network of /24 or larger, such as 10.213.0.0/16", read=_read_range
)
FOLDER = Kind(words="the path of a folder", read=lambda value: Path(_read_text(value)).expanduser())
BASE_URL = Kind(words="an http or https URL of a host alone", read=_read_base_url)
FLAVORS = Kind(
    words="a list of different flavor=cores:memory or flavor=cores:memory:devices, such as "
    "cpu-basic=2:16G or t4-small=4:16G:/dev/nvidia0+/dev/nvidia1, or in a cluster "
    "t4-small=4:16G:gpu=1:node=label:value",
    read=_read_flavors,
)
DEVICES = Kind(words="a list of devices such as /dev/nvidiactl", read=_read_devices)
IMAGES = Kind(
    words="a list of pattern=target, such as python:*=/srv/images/python, a .tar or host",
    read=_read_images,
)
ISSUERS = Kind(
    words="a list of https URLs, or http ones of this machine, such as https://gitlab.com",
    read=_read_issuers,
)
REGISTRIES = Kind(
    words="a list of registries such as docker.io, *.example.com, http://10.0.0.5:5000 or *",
    read=_read_registries,
)
MIRRORS = Kind(
    words="a list of registry=URL, such as docker.io=https://mirror.example.com",
    read=_read_mirrors,
)
CLUSTER_NAMES = Kind(
    words="a list of names as a cluster allows them: lower-case letters, digits and -.",
    read=lambda value: tuple(map(_read_cluster_name, _read_list(value))),
)
CLUSTER_LABELS = Kind(
    words="a list of labels such as app.kubernetes.io/name=hublet", read=_read_cluster_labels
)
CLUSTER_NAME = text_matching(
    "a name as a cluster allows it", r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
)
IMAGE_NAME = text_matching("the name of an image", r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
RESOURCE_NAME = text_matching(
    "a resource of a cluster such as nvidia.com/gpu", r"[a-z0-9.-]+/[A-Za-z0-9._-]+"
)
PULL_POLICIES = one_of({name: name for name in ("always", "if-not-present")})
NETWORK = one_of({name: name for name in ("none", "outbound", "shared")})
RUNNERS = one_of({name: name for name in ("auto", "sandbox", "process", "docker", "kubernetes")})
SQL_SANDBOXES = one_of({name: name for name in ("auto", "bubblewrap", "process")})
ROLES = one_of({role: role for role in ("all", "api", "worker")})
PROCESSES = Kind(words=f"auto or a whole number from 1 to {_MAX_PROCESSES}", read=_read_processes)
SIGN_UP = one_of({who: who for who in ("closed", "invited", "open")})
RING = Kind(words="a list of different id:key, each key 32 bytes in base64url", read=_read_key_ring)
COUNT = number(1, 10**9, int)
LEVELS = one_of({level: level for level in ("debug", "info", "warning", "error")})
FORMATS = one_of({form: form for form in ("auto", "console", "json")})
SERVER_NAME = text_matching("a host name or an IP address", r"[A-Za-z0-9._:-]+")
DOMAIN = text_matching("a domain name", r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
BEARER = text_matching("one word of letters, digits and -._~+/=", r"[A-Za-z0-9._~+/=-]+")
_POSTGRESQL = rf"postgres(?:ql)?://(?:[^/?#@\s]*@)?(?:{_HOST}(?:,{_HOST})*)?(?:[/?]\S*)?"
DATABASE = text_matching(
    "a postgresql:// or sqlite:///path URL, special characters in its password %-encoded",
    rf"sqlite:///.+|{_POSTGRESQL}",
)
POSTGRESQL = text_matching(
    "a postgresql:// URL, special characters in its password %-encoded", _POSTGRESQL
)
COLLECTOR = text_matching(
    "an http or https URL such as http://localhost:4318/v1/traces",
    rf"https?://{_HOST}/[^?#\s@]*",
)
STORAGE = text_matching(
    "a file:///folder or s3://bucket/prefix?endpoint=…&region=… URL",
    r"file:///[^?#]+|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[^?#\s]*)?(?:\?[^#\s]+)?",
)
SMTP = text_matching(
    "an smtp:// or smtps:// URL, special characters in its password %-encoded",
    rf"smtps?://(?:[^/?#@:\s]+:[^/?#@:\s]+@)?{_HOST}/?",
)
SENDER = text_matching("a mail address, with or without a name", rf"[^<>@]*<{_ADDRESS}>|{_ADDRESS}")
# The public client refuses a token that begins with api_org, and chance could write one. A longer
# prefix would make credentials longer than 64 characters.
PREFIX = text_matching("1 to 8 letters or digits and _, but not api_", r"(?!api_)[A-Za-z0-9]{1,8}_")


def setting(
    default: object, kind: Kind, sentence: str, *, unset: str = "none", secret: bool = False
) -> Any:
    metadata = {"kind": kind, "sentence": sentence, "unset": unset, "secret": secret}
    return field(default=default, repr=not secret, metadata=metadata)
