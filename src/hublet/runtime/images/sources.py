"""Sources of images: whether a name is mapped, of this hub's registry, or of another one."""

from collections.abc import Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.core.outgoing import AddressPolicy, Tier
from hublet.core.outgoing.networks import networks_of
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.references import ImageReference, parse_reference

_HOST_MAP = (ImageSource(pattern="*", target="host"),)
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


class SourceType(StrEnum):
    # A folder or file of this machine, or the machine itself.
    mapped = "mapped"
    hub = "hub"
    registry = "registry"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    type: SourceType
    # None: the image is mapped.
    reference: ImageReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEndpoint:
    """Where a registry answers: the registry itself, or a mirror of it."""

    # Without a slash at its end; with the path of a mirror below /v2.
    url: str
    # Of its credentials.
    host: str
    # Whether the administrator named it, so that it may have a private address.
    is_named: bool
    is_mirror: bool = False


def image_map(settings: Settings) -> tuple[ImageSource, ...]:
    """Return the images of this machine; where none is mapped, the host stands for all of them."""
    images = settings.jobs.images
    is_host = settings.server.test_mode or settings.jobs.host_programs
    return _HOST_MAP if is_host and not images else images


def find_source(settings: Settings, name: str, *, is_space: bool = False) -> FoundSource:
    """Return where the image of a name comes from. Raises CannotRun.

    The map of the settings counts first, then this hub's registry, then the registries that are
    allowed. The host stands for other names only while neither maps nor registries are set.
    """
    if _is_mapped(settings, name):
        return FoundSource(type=SourceType.mapped)
    own = None if is_space else find_hub_reference(settings, name)
    if own is not None:
        return FoundSource(type=SourceType.hub, reference=own)
    if settings.jobs.registries and not is_space:
        reference = parse_reference(name)
        if not is_allowed(settings, reference.host):
            raise CannotRun(
                f"Images of {reference.host} are not allowed here: an administrator of the hub "
                "allows registries in jobs.registries."
            )
        return FoundSource(type=SourceType.registry, reference=reference)
    if not image_map(settings) or settings.jobs.images:
        raise CannotRun(f"This hub has no image {name}.")
    return FoundSource(type=SourceType.mapped)


def _is_mapped(settings: Settings, name: str) -> bool:
    return any(fnmatchcase(name, image.pattern) for image in settings.jobs.images)


def find_hub_reference(settings: Settings, name: str) -> ImageReference | None:
    """Return the reference to an image of this hub's registry; None for any other name."""
    try:
        reference = parse_reference(name)
    except CannotRun:
        return None
    is_own = reference.host in hub_hosts(settings) and not _is_mapped(settings, name)
    return reference if is_own else None


def hub_hosts(settings: Settings) -> frozenset[str]:
    """Return the names of this hub in names of images, with their ports."""
    own = {
        urlsplit(settings.base_url).netloc,
        *(f"{n}:{settings.server.port}" for n in _LOCAL_NAMES),
    }
    return frozenset(host.lower() for host in own)


def is_allowed(settings: Settings, host: str) -> bool:
    """Tell whether jobs may pull from a registry; one with a mirror is still to be allowed."""
    return any(fnmatchcase(host, rule.pattern) for rule in settings.jobs.registries)


def endpoints_of(settings: Settings, reference: ImageReference) -> Iterator[RegistryEndpoint]:
    """Yield where to ask for an image: mirrors first, then the registry."""
    for mirror in settings.jobs.registry_mirrors:
        if mirror.host == reference.host:
            parts = urlsplit(mirror.url)
            url = f"{parts.scheme}://{parts.netloc}/v2{parts.path}"
            yield RegistryEndpoint(url=url, host=parts.netloc, is_named=True, is_mirror=True)
    rules = [rule for rule in settings.jobs.registries if fnmatchcase(reference.host, rule.pattern)]
    scheme = "http" if any(rule.is_plain for rule in rules) else "https"
    yield RegistryEndpoint(
        url=f"{scheme}://{reference.api_host}/v2",
        host=reference.host,
        is_named=any(rule.is_exact for rule in rules),
    )


def named_registries(settings: Settings) -> list[tuple[str, str]]:
    """Return the registries and mirrors that are named, each with the address that says it works."""
    found = list[tuple[str, str]]()
    for rule in settings.jobs.registries:
        if rule.is_exact:
            reference = ImageReference(host=rule.pattern, repository="", tag="")
            scheme = "http" if rule.is_plain else "https"
            found.append((rule.pattern, f"{scheme}://{reference.api_host}/v2/"))
    for mirror in settings.jobs.registry_mirrors:
        parts = urlsplit(mirror.url)
        found.append((f"the mirror {parts.netloc}", f"{parts.scheme}://{parts.netloc}/v2/"))
    return found


def named_hosts(settings: Settings) -> frozenset[str]:
    """Return the hosts, with their ports, that the administrator named for images."""
    mirrors = {urlsplit(mirror.url).netloc for mirror in settings.jobs.registry_mirrors}
    return frozenset({rule.pattern for rule in settings.jobs.registries if rule.is_exact} | mirrors)


def named_policy(settings: Settings) -> AddressPolicy:
    """Return the addresses at which a named registry may answer: private ones and this machine too.

    Metadata services and the like stay closed.
    """
    opened = (*networks_of(Tier.private), *_LOOPBACK)
    return AddressPolicy(allow=(*settings.outgoing.allow, *opened))
