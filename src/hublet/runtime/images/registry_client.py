"""Client of container registries: manifests and blobs by the OCI Distribution protocol."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.outgoing import FailureReason, OutgoingClient, OutgoingFailed
from hublet.runtime.errors import ImageAbsent, ImageDenied, RegistryUnavailable
from hublet.runtime.images import oci
from hublet.runtime.images.references import ImageReference
from hublet.runtime.images.sources import RegistryEndpoint, named_hosts, named_policy

if TYPE_CHECKING:
    from hublet.core.outgoing.streams import OutgoingStream

T = TypeVar("T")

# Any wait for the other side: for a connection, a head, or the next bytes.
IDLE_SECONDS = 30.0
# Waits before an exchange is tried again; the registry may ask for longer ones, up to a limit.
RETRY_DELAYS = (0.5, 2.0, 5.0)
_MAX_RETRY_AFTER = 60.0
_MOST_REDIRECTS = 5
_TOKEN_BYTES = 64 * 1024
# What a token lasts that does not say, by the token protocol of Docker.
_TOKEN_SECONDS = 60.0
_TOKEN_MARGIN = 10.0
_ACCEPT = ", ".join((*sorted(oci.INDEX_TYPES), *sorted(oci.MANIFEST_TYPES)))
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"\\]*)"')
_LASTING = {FailureReason.blocked_target, FailureReason.tls_failed, FailureReason.bad_answer}
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLogin:
    """How to log in to a registry."""

    username: str
    secret: str = field(repr=False)

    @property
    def basic(self) -> str:
        pair = f"{self.username}:{self.secret}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Authorization:
    value: str = field(repr=False)
    until: float


class RegistryTransport:
    """Connections and tokens of one process; registries that are named may have any address."""

    def __init__(self, settings: Settings) -> None:
        self._guarded = OutgoingClient(settings)
        self._opened = OutgoingClient(settings, policy=named_policy(settings))
        self._named = named_hosts(settings)
        self._authorizations: dict[tuple[str, str, str], _Authorization] = {}

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], *, is_named: bool
    ) -> "AsyncIterator[OutgoingStream]":
        is_named = is_named or urlsplit(url).netloc.lower() in self._named
        client = self._opened if is_named else self._guarded
        async with client.stream(method, url, headers, idle_seconds=IDLE_SECONDS) as response:
            yield response

    def authorization(self, key: tuple[str, str, str]) -> str | None:
        found = self._authorizations.get(key)
        return found.value if found is not None and found.until > monotonic() else None

    def keep_authorization(self, key: tuple[str, str, str], value: str, seconds: float) -> None:
        now = monotonic()
        kept = {each: was for each, was in self._authorizations.items() if was.until > now}
        self._authorizations = kept | {key: _Authorization(value=value, until=now + seconds)}

    async def close(self) -> None:
        await self._guarded.close()
        await self._opened.close()


class RegistryClient:
    """One repository at one endpoint, as one login sees it. Raises ImageAbsent and the like."""

    def __init__(
        self,
        transport: RegistryTransport,
        endpoint: RegistryEndpoint,
        reference: ImageReference,
        login: RegistryLogin | None,
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._reference = reference
        self._login = login
        self._key = (endpoint.url, reference.repository, "" if login is None else login.basic)

    async def digest_of_tag(self) -> str | None:
        """Return what the tag is now; None: the registry does not say without sending it."""

        async def ask() -> str | None:
            path = f"manifests/{quote(self._reference.version, safe=':')}"
            async with self._exchange("HEAD", path, {"Accept": _ACCEPT}) as response:
                self._check(response)
                return response.headers.get("docker-content-digest")

        return await self._retried(ask)

    async def manifest(self, version: str) -> bytes:
        """Return a manifest or an index; by digest its content is verified."""

        async def get() -> bytes:
            path = f"manifests/{quote(version, safe=':')}"
            async with self._exchange("GET", path, {"Accept": _ACCEPT}) as response:
                self._check(response)
                content = await response.read(oci.DOCUMENT_BYTES)
            if content is None:
                raise self._unavailable("its manifest is longer than 4 MiB", is_passing=False)
            digest = version if ":" in version else response.headers.get("docker-content-digest")
            if digest and not _matches(content, digest):
                raise self._unavailable(f"what it sends is not {digest}")
            return content

        return await self._retried(get)

    async def document(self, entry: oci.Descriptor) -> bytes:
        """Return an index, a manifest or a configuration that another document describes."""
        if entry.media_type in oci.INDEX_TYPES | oci.MANIFEST_TYPES:
            content = await self.manifest(entry.digest)
        else:
            content = await self._retried(lambda: self._small_blob(entry))
        if entry.size is not None and len(content) != entry.size:
            raise self._unavailable(f"{entry.digest} has another size than said", is_passing=False)
        return content

    async def _small_blob(self, entry: oci.Descriptor) -> bytes:
        async with self.open_blob(entry.digest, 0) as response:
            content = await response.read(oci.DOCUMENT_BYTES)
        if content is None or not _matches(content, entry.digest):
            raise self._unavailable(f"what it sends is not {entry.digest}")
        return content

    @asynccontextmanager
    async def open_blob(self, digest: str, start: int) -> "AsyncIterator[OutgoingStream]":
        """Open a blob; from `start` on if the registry can, which status 206 says."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with self._exchange("GET", f"blobs/{digest}", headers) as response:
            self._check(response)
            yield response

    async def _retried(self, work: Callable[[], Awaitable[T]]) -> T:
        for delay in RETRY_DELAYS:
            try:
                return await work()
            except RegistryUnavailable as error:
                if not error.is_passing:
                    raise
                await asyncio.sleep(min(error.retry_after or delay, _MAX_RETRY_AFTER))
        return await work()

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> "AsyncIterator[OutgoingStream]":
        """Send a request, log in when that is asked for, and follow redirects."""
        own = url = f"{self._endpoint.url}/{self._reference.repository}/{path}"
        was_challenged = False
        for _ in range(_MOST_REDIRECTS):
            is_own = _origin(url) == _origin(own)
            # Never to another host: a signed address needs none, and a stranger gets none.
            authorization = self._transport.authorization(self._key) if is_own else None
            sent = {**headers, **({"Authorization": authorization} if authorization else {})}
            async with self._opened(method, url, sent, is_own=is_own) as response:
                challenge = response.headers.get("www-authenticate", "")
                location = response.headers.get("location", "")
                is_challenge = response.status == 401 and is_own and not was_challenged  # noqa: PLR2004
                if response.status not in _REDIRECTS and not (is_challenge and challenge):
                    yield response
                    return
            if is_challenge:
                was_challenged = True
                await self._log_in(challenge)
            else:
                url = self._redirect(url, location)
        raise self._unavailable("it redirects without end", is_passing=False)

    def _redirect(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https":
            raise self._unavailable("it redirects to a place without TLS", is_passing=False)
        return target

    @asynccontextmanager
    async def _opened(
        self, method: str, url: str, headers: Mapping[str, str], *, is_own: bool
    ) -> "AsyncIterator[OutgoingStream]":
        is_named = is_own and self._endpoint.is_named
        try:
            async with self._transport.stream(method, url, headers, is_named=is_named) as response:
                yield response
        except OutgoingFailed as error:
            is_passing = error.reason not in _LASTING
            raise self._unavailable(error.detail.rstrip("."), is_passing=is_passing) from None

    async def _log_in(self, challenge: str) -> None:
        scheme, _, rest = challenge.partition(" ")
        fields = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
        if scheme.lower() == "basic" and self._login is not None:
            self._transport.keep_authorization(self._key, self._login.basic, _TOKEN_SECONDS)
        elif scheme.lower() == "bearer" and "realm" in fields:
            await self._get_token(fields)
        else:
            raise self._denied()

    async def _get_token(self, fields: Mapping[str, str]) -> None:
        """Get a token as the Docker token protocol says, with the login or as nobody."""
        scope = fields.get("scope") or f"repository:{self._reference.repository}:pull"
        query = {"scope": scope} | ({"service": fields["service"]} if "service" in fields else {})
        url = fields["realm"]
        is_open = urlsplit(self._endpoint.url).scheme == "http"
        if urlsplit(url).scheme != "https" and not is_open:
            raise self._unavailable("its tokens come from a place without TLS", is_passing=False)
        headers = {"Authorization": self._login.basic} if self._login else {}
        url = f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
        is_own = _origin(url) == _origin(self._endpoint.url)
        async with self._opened("GET", url, headers, is_own=is_own) as response:
            self._check(response)
            content = await response.read(_TOKEN_BYTES)
        token, seconds = _read_token(content or b"")
        if token is None:
            raise self._unavailable("it gives no token")
        lasts = max(seconds - _TOKEN_MARGIN, _TOKEN_MARGIN)
        self._transport.keep_authorization(self._key, f"Bearer {token}", lasts)

    def _check(self, response: "OutgoingStream") -> None:
        status = response.status
        if status in {200, 206}:
            return
        if status == 404:  # noqa: PLR2004 - not found.
            raise ImageAbsent(
                f"{self._endpoint.host} has no image {self._short_name}: check the name and the tag."
            )
        if status in {401, 403}:
            raise self._denied()
        if status == 429:  # noqa: PLR2004 - too many requests.
            raise RegistryUnavailable(
                f"{self._endpoint.host} allows no more pulls for now: run the job later, or store "
                f"credentials for {self._endpoint.host}.",
                retry_after=_seconds(response.headers.get("retry-after", "")),
            )
        # Others do not pass: the request would be the same.
        raise self._unavailable(f"it answers with status {status}", is_passing=status >= 500)  # noqa: PLR2004

    @property
    def _short_name(self) -> str:
        return str(self._reference).partition("/")[2]

    def _denied(self) -> ImageDenied:
        host = self._endpoint.host
        if self._login is not None:
            return ImageDenied(
                f"{host} does not give {self._short_name} to {self._login.username}: check the "
                f"name, or replace the credentials that are stored for {host}."
            )
        return ImageDenied(
            f"{host} has no public image {self._short_name}: check the name; if it is private, "
            f"store credentials for {host}."
        )

    def _unavailable(self, why: str, *, is_passing: bool = True) -> RegistryUnavailable:
        return RegistryUnavailable(
            f"{self._reference} cannot be pulled from {self._endpoint.host} ({why}): run the job "
            "again later, or ask an administrator whether this machine reaches that registry.",
            is_passing=is_passing,
        )


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


def _matches(content: bytes, digest: str) -> bool:
    algorithm, _, name = digest.partition(":")
    return algorithm not in {"sha256", "sha512"} or oci.is_document(content, f"{algorithm}:{name}")


def _seconds(text: str) -> float | None:
    return float(text) if text.isdigit() else None


def _read_token(content: bytes) -> tuple[str | None, float]:
    try:
        document: Any = json.loads(content)
    except ValueError:
        return None, 0.0
    if not isinstance(document, dict):
        return None, 0.0
    token = document.get("token") or document.get("access_token")
    seconds = document.get("expires_in")
    lasts = float(seconds) if isinstance(seconds, int | float) else _TOKEN_SECONDS
    is_word = isinstance(token, str) and token.isascii() and token.isprintable()
    return (token if is_word else None), lasts
