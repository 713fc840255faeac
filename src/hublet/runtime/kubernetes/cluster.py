"""Connection to a cluster: objects by lightkube; logs and websockets by aiohttp.

Both log in as the kubeconfig or the service account says.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, TypeVar, cast

import aiohttp
import httpx2
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from lightkube.resources.core_v1 import Event, Pod, Secret, Service
from lightkube.resources.networking_v1 import NetworkPolicy

from hublet.runtime.kubernetes import manifests, network_manifests
from hublet.runtime.kubernetes.manifests import JOB_CONTAINER, Manifest, PodSettings
from hublet.runtime.records import LaunchOrder

_CONNECT_SECONDS = 10.0
# A log that is silent for so long is opened again: its node may be gone.
_SILENT_SECONDS = 60.0
# After so long a cluster ends a watch; one that says nothing for longer is dead.
_WATCH_SECONDS = 300
_CHUNK = 1 << 16
_HEARTBEAT_SECONDS = 30.0
_MOST_TEXT = 500

# What can go wrong on the way to a cluster; ApiError is one of them.
CLUSTER_ERRORS = (httpx2.HTTPError, aiohttp.ClientError, ConfigError, OSError, TimeoutError)


_Kind = TypeVar("_Kind")


def resource_of(kind: type[_Kind], manifest: dict[str, Any]) -> _Kind:
    """Return the object that a manifest describes."""
    return cast("_Kind", cast("Any", kind).from_dict(manifest))


def status_of(error: BaseException) -> int | None:
    """Return the status that a cluster answered with; None: it did not answer."""
    if isinstance(error, ApiError):
        return error.status.code
    return error.status if isinstance(error, aiohttp.ClientResponseError) else None


def text_of(error: BaseException) -> str:
    """Return what a cluster said, or what kept it from speaking."""
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    return str(error) or type(error).__name__


@contextmanager
def ignore_status(status: HTTPStatus) -> Iterator[None]:
    """Ignore that the cluster answers with a status."""
    try:
        yield
    except ApiError as error:
        if status_of(error) != status:
            raise


class ClusterConnection:
    """One namespace of a cluster. Raises CLUSTER_ERRORS."""

    def __init__(self, namespace: str | None) -> None:
        config = KubeConfig.from_env().get()
        if config is None:
            raise ConfigError("No current context is set.")
        # Its adapter takes nobody for a mistake.
        self._config = config._replace(user=config.user or User())
        self.api = AsyncClient(config=self._config, namespace=namespace, field_manager="hublet")
        self.namespace = namespace or config.namespace
        # Where the hub itself is, if it runs in the cluster.
        self.home = config.namespace
        self.server = config.cluster.server
        self._session: aiohttp.ClientSession | None = None
        self._auth = user_auth(self._user)

    @property
    def _user(self) -> User:
        return cast("User", self._config.user)

    async def create_attempt(self, order: LaunchOrder, settings: PodSettings) -> None:
        """Create the objects of an attempt, or find them; the pod waits for its secrets."""
        name = manifests.name_of(order)
        with ignore_status(HTTPStatus.CONFLICT):
            await self.api.create(resource_of(Pod, manifests.pod_of(order, settings)))
        pod = await self.api.get(Pod, name)
        owner = manifests.owner_of(name, (pod.metadata.uid if pod.metadata else None) or "")
        # That of the image comes first: a node that misses it tries again only seconds later.
        for secret in (
            manifests.pull_secret_of(order, owner=owner),
            manifests.secret_of(order, owner=owner),
        ):
            if secret is not None:
                with ignore_status(HTTPStatus.CONFLICT):
                    await self.api.create(resource_of(Secret, secret))
        if order.group is not None:
            for service in network_manifests.services_of(order, settings, owner=owner):
                await self._share(Service, service)
            policy = network_manifests.group_policy(order, settings, owner=owner)
            await self._share(NetworkPolicy, policy)

    async def _share(self, kind: type[Any], manifest: Manifest) -> None:
        """Create an object that several pods own, or become one of its owners.

        The cluster removes it after the last of them.
        """
        owners = {"metadata": {"ownerReferences": manifest["metadata"]["ownerReferences"]}}
        while True:
            with ignore_status(HTTPStatus.CONFLICT):
                await self.api.create(resource_of(kind, manifest))
                return
            # It may go just now, with the last pod before this one.
            with ignore_status(HTTPStatus.NOT_FOUND):
                await self.api.patch(kind, manifest["metadata"]["name"], owners)
                return

    async def apply_policy(self, settings: PodSettings) -> None:
        """Create or renew the network policy of a hub's pods."""
        policy = resource_of(NetworkPolicy, network_manifests.hub_policy(settings))
        await self.api.apply(policy, force=True)

    async def close(self) -> None:
        await self.api.close()
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def log(
        self, pod: str, *, since: str | None, is_followed: bool
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the log of a job's container, each line with its time in front."""
        params = {"container": JOB_CONTAINER, "timestamps": "true"}
        params |= {} if since is None else {"sinceTime": since}
        params |= {"follow": "true"} if is_followed else {}
        async with self._get(
            self._url(pod, "log"), params, silent_seconds=_SILENT_SECONDS
        ) as response:
            yield _chunks(response, is_followed=is_followed)

    async def list_pods(self, labels: dict[str, Any]) -> tuple[list[str], str]:
        """Return the names of the pods with these labels, and the version of the list."""
        found = self.api.list(Pod, labels=labels)
        names = [(pod.metadata.name if pod.metadata else None) or "" async for pod in found]
        return names, found.resourceVersion

    async def list_events(self, pod: str) -> list[Event]:
        about: dict[str, Any] = {"involvedObject.kind": "Pod", "involvedObject.name": pod}
        return [event async for event in self.api.list(Event, fields=about)]

    @asynccontextmanager
    async def watch(
        self, labels: dict[str, Any], *, version: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch of the pods with these labels: a line for each change, and bookmarks.

        lightkube's own asks for no bookmarks, and waits for ever on a connection that is dead.
        """
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "labelSelector": ",".join(f"{name}={value}" for name, value in labels.items()),
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        url = f"{self.server.rstrip('/')}/api/v1/namespaces/{self.namespace}/pods"
        silent = _WATCH_SECONDS + _CONNECT_SECONDS
        async with self._get(url, params, silent_seconds=silent) as response:
            yield _lines(response)

    @asynccontextmanager
    async def _get(
        self, url: str, params: dict[str, str], *, silent_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a stream; a login that has expired is renewed once."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=silent_seconds
        )
        for is_last in (False, True):
            async with self._http().get(
                url, params=params, headers=await self._headers(), timeout=timeout
            ) as response:
                if response.status == HTTPStatus.UNAUTHORIZED and not is_last:
                    self._auth = user_auth(self._user)
                    continue
                await _raise_for_status(response)
                yield response
                return

    async def websocket(
        self, pod: str, action: str, params: list[tuple[str, str]], *, protocol: str
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a websocket into a pod: exec or portforward."""
        for is_last in (False, True):
            try:
                return await self._http().ws_connect(
                    self._url(pod, action),
                    params=params,
                    headers=await self._headers(),
                    protocols=[protocol],
                    heartbeat=_HEARTBEAT_SECONDS,
                    max_msg_size=0,
                )
            except aiohttp.WSServerHandshakeError as error:
                if error.status != HTTPStatus.UNAUTHORIZED or is_last:
                    raise
                self._auth = user_auth(self._user)
        raise AssertionError

    def _url(self, pod: str, action: str) -> str:
        server = self.server.rstrip("/")
        return f"{server}/api/v1/namespaces/{self.namespace}/pods/{pod}/{action}"

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = _ssl_context(self._config, self._user)
            # Every job that runs has a log open.
            connector = aiohttp.TCPConnector(ssl=context, limit=0)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    async def _headers(self) -> dict[str, str]:
        """Return the header of the login; a plugin of the kubeconfig may run for it."""
        if self._auth is None:
            return {}
        request = httpx2.Request("GET", self.server)
        flow = self._auth.async_auth_flow(request)
        try:
            await anext(flow)
        finally:
            await flow.aclose()
        return {"Authorization": request.headers["Authorization"]}


def _ssl_context(config: SingleConfig, user: User) -> Any:
    return verify_cluster(config.cluster, user, config.abs_file)


def _message(body: str) -> str:
    """Return the sentence in an answer of a cluster."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:_MOST_TEXT]


async def _raise_for_status(response: aiohttp.ClientResponse) -> None:
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise aiohttp.ClientResponseError(
            response.request_info,
            response.history,
            status=response.status,
            message=_message(await response.text()),
        )


async def _chunks(response: aiohttp.ClientResponse, *, is_followed: bool) -> AsyncIterator[bytes]:
    try:
        async for data in response.content.iter_chunked(_CHUNK):
            yield data
    except aiohttp.ServerTimeoutError:
        # A job may be silent; a log that is read to its end is not.
        if not is_followed:
            raise


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines, however long: a pod may have megabytes of status."""
    rest = bytearray()
    async for data in response.content.iter_chunked(_CHUNK):
        rest += data
        while (end := rest.find(b"\n")) >= 0:
            line = bytes(rest[:end])
            del rest[: end + 1]
            if line:
                yield line
