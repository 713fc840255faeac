"""Pulls: put the image of a job on this machine before its attempt is launched.

A layer that is here is used again by whoever was given it once: the owner whose credentials fetched
it, or everybody if it needed none. Whoever only knows the digest of a layer fetches it anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.jobs.records import JobRecord
from hublet.registry import credentials
from hublet.repos.download_counter import DownloadCounter
from hublet.runtime.errors import CannotRun, ImageAbsent, ImageDenied, RegistryUnavailable
from hublet.runtime.images import cache, hub_images, oci
from hublet.runtime.images.layer_cache import has_layer
from hublet.runtime.images.layer_download import LayerSource, fetch_layer
from hublet.runtime.images.pull_log import PullLog, format_size
from hublet.runtime.images.pulled_files import KnownTag, PulledFiles, images_folder
from hublet.runtime.images.references import ImageReference
from hublet.runtime.images.registry_client import RegistryClient, RegistryLogin, RegistryTransport
from hublet.runtime.images.shared_images import SharedImages
from hublet.runtime.images.sources import RegistryEndpoint, SourceType, endpoints_of, find_source
from hublet.runtime.images.unpacker import explain
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.records import ImageLogin

log = get_logger("jobs")

# Layers of one image that are fetched at a time.
_PARALLEL = 4
# The scope of what needed no credentials of an owner.
PUBLIC = "public"
# The scope of files on their way from this hub's own store.
_HUB = "hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RegistryPull:
    """A pull from one endpoint: with whose credentials, and who is told of it."""

    client: RegistryClient
    reference: ImageReference
    # PUBLIC, or the id of the owner whose credentials are used.
    scope: str
    log: PullLog

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes whose content may be used."""
        return (PUBLIC, self.scope)


class ImagePuller:
    """Pulls images for the attempts of one Supervisor."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settings: Settings = database.hub.settings
        self._cache = images_folder(self._settings.database.data_dir)
        self._files = PulledFiles(self._cache)
        self._shared = SharedImages(self._settings)
        self._transport = RegistryTransport(self._settings)
        self._downloads = DownloadCounter(database)

    async def close(self) -> None:
        await self._transport.close()
        await self._downloads.stop()

    async def tidy_up(self) -> None:
        """Remove old images from the shared store; called from time to time."""
        await asyncio.to_thread(self._shared.prune)

    async def pull(
        self, job: JobRecord, name: str, *, is_space: bool, log_path: Path
    ) -> str | None:
        """Return the digest of the image for this machine, pulled and unpacked; None: it is mapped.

        Raises CannotRun with a sentence that says what to do. May be cancelled at any time.
        """
        source = find_source(self._settings, name, is_space=is_space)
        if source.reference is None:
            return None
        pull_log = PullLog(log_path, limit=self._settings.jobs.log_bytes)
        try:
            if source.type is SourceType.hub:
                digest = await self._pull_from_hub(job, source.reference, pull_log)
            else:
                digest = await self._pull_from_registry(job, source.reference, pull_log)
            await self._unpack(digest)
        except OSError as error:
            raise explain(error) from error
        return digest

    async def find_engine_image(self, job: JobRecord, name: str) -> tuple[str, ImageLogin] | None:
        """Return what an engine needs to pull an image of this hub itself; None for any other."""
        return await hub_images.find_engine_image(self._database, job, name, self._downloads)

    async def _unpack(self, digest: str) -> None:
        manifest = await run_in_launch_thread(self._files.load_image, digest)
        if manifest is None:
            raise CannotRun("The image was removed while it was pulled: run the job again.")
        await run_in_launch_thread(cache.prepare_manifest, manifest, cache=self._cache)

    async def _pull_from_hub(
        self, job: JobRecord, reference: ImageReference, pull_log: PullLog
    ) -> str:
        """Pull from this hub's own registry: whoever may read the image may use its layers."""
        found = await hub_images.find_hub_image(self._database, job, reference, self._downloads)
        known = await run_in_launch_thread(self._find_known, _HUB, found.top.digest)
        if known is not None:
            return known.image
        image = await _select(
            found.top,
            found.document,
            lambda entry: hub_images.read_document(self._database, found, entry),
        )
        layers = {each.digest: each for each in image.layers}.values()
        missing = [each for each in layers if not self._is_here(each.digest)]
        if missing:
            await self._fetch_all(
                reference, missing, lambda each: self._copy(found, each, pull_log), pull_log
            )
        tag = KnownTag(top=found.top.digest, image=image.digest)
        await run_in_launch_thread(self._keep, _HUB, found.top.digest, image, tag)
        return image.digest

    async def _copy(
        self, image: hub_images.HubImage, layer: oci.Descriptor, pull_log: PullLog
    ) -> None:
        content = await hub_images.find_layer(self._database, image, layer)
        is_done = partial(self._is_here, layer.digest)
        async with self._files.locked_layer(layer.digest, _HUB, is_done=is_done) as file:
            if file is not None:
                await run_in_launch_thread(
                    hub_images.copy_layer, self._settings, content, file, layer
                )
        pull_log.count_bytes(content.size)

    async def _pull_from_registry(
        self, job: JobRecord, reference: ImageReference, pull_log: PullLog
    ) -> str:
        """Pull from the first endpoint that has the image; the last one says why none does."""
        *mirrors, registry = endpoints_of(self._settings, reference)
        for mirror in mirrors:
            try:
                return await self._pull_with(await self._begin(job, mirror, reference, pull_log))
            except (ImageAbsent, ImageDenied, RegistryUnavailable) as error:
                log.info("a mirror was passed over", host=mirror.host, reason=str(error))
        return await self._pull_with(await self._begin(job, registry, reference, pull_log))

    async def _begin(
        self,
        job: JobRecord,
        endpoint: RegistryEndpoint,
        reference: ImageReference,
        pull_log: PullLog,
    ) -> _RegistryPull:
        login, scope = await self._find_login(job, endpoint)
        client = RegistryClient(self._transport, endpoint, reference, login)
        return _RegistryPull(client=client, reference=reference, scope=scope, log=pull_log)

    async def _find_login(
        self, job: JobRecord, endpoint: RegistryEndpoint
    ) -> tuple[RegistryLogin | None, str]:
        """Return how to log in, and who may use what is fetched so.

        The job's owner comes first. A mirror is the administrator's: no owner logs in there.
        """
        owners = (credentials.HUB,) if endpoint.is_mirror else (job.owner_id, credentials.HUB)
        async with self._database.read() as conn:
            for owner_id in owners:
                login = await credentials.find_login(conn, owner_id, endpoint.host.lower())
                if login is not None:
                    return RegistryLogin(username=login[0], secret=login[1]), owner_id or PUBLIC
        return None, PUBLIC

    async def _pull_with(self, pull: _RegistryPull) -> str:
        name = str(pull.reference)
        known = await run_in_launch_thread(self._find_known, pull.scope, name)
        if known is not None and await self._is_current(pull, known):
            return known.image
        document = await self._read_top(pull)
        algorithm = (pull.reference.digest or "sha256:").partition(":")[0]
        top = oci.Descriptor(digest=oci.digest_of(document, algorithm), size=len(document))
        await run_in_launch_thread(self._shared.keep, pull.scope, top.digest, document)
        image = await _select(top, document, lambda entry: self._read_document(pull, entry))
        missing = await run_in_launch_thread(self._list_missing, image, pull.scope)
        if missing:
            await self._fetch_all(
                pull.reference, missing, lambda each: self._fetch(pull, each), pull.log
            )
        tag = KnownTag(top=top.digest, image=image.digest)
        await run_in_launch_thread(self._keep, pull.scope, name, image, tag)
        return image.digest

    async def _read_top(self, pull: _RegistryPull) -> bytes:
        """Return what the reference stands for; by its digest another machine may have had it."""
        try:
            return await pull.client.manifest(pull.reference.version)
        except RegistryUnavailable:
            if pull.reference.digest is None:
                raise
            entry = oci.Descriptor(digest=pull.reference.digest, size=None)
            stored = await run_in_launch_thread(self._shared.read, pull.scopes, entry)
            if stored is None:
                raise
            return stored

    async def _read_document(self, pull: _RegistryPull, entry: oci.Descriptor) -> bytes:
        stored = await run_in_launch_thread(self._shared.read, pull.scopes, entry)
        if stored is not None:
            return stored
        content = await pull.client.document(entry)
        await run_in_launch_thread(self._shared.keep, pull.scope, entry.digest, content)
        return content

    def _find_known(self, scope: str, name: str) -> KnownTag | None:
        """Return what a name was before, if all of that is still on this machine."""
        known = self._files.find_tag(scope, name)
        image = None if known is None else self._files.load_image(known.image)
        if image is None or not all(self._is_here(digest) for _, digest in image.layers):
            return None
        return known

    async def _is_current(self, pull: _RegistryPull, known: KnownTag) -> bool:
        """Tell whether an image that is here may be used; a digest is never asked for again."""
        if pull.reference.digest or self._settings.jobs.pull_policy == "if-not-present":
            return True
        try:
            return await pull.client.digest_of_tag() == known.top
        except RegistryUnavailable as error:
            pull.log.add(f"The image that is here is used: {error}")
            return True

    def _is_here(self, digest: str) -> bool:
        return has_layer(self._cache, digest) or self._files.layer_path(digest).exists()

    def _is_fetched(self, digest: str, scope: str) -> bool:
        """Tell whether a layer is here and was given to whoever has this scope."""
        was_given = any(self._files.was_fetched(each, digest) for each in (PUBLIC, scope))
        return was_given and self._is_here(digest)

    def _list_missing(self, image: oci.SelectedImage, scope: str) -> list[oci.Descriptor]:
        layers = {each.digest: each for each in image.layers}.values()
        return [layer for layer in layers if not self._is_fetched(layer.digest, scope)]

    async def _fetch_all(
        self,
        reference: ImageReference,
        layers: Sequence[oci.Descriptor],
        fetch: Callable[[oci.Descriptor], Awaitable[None]],
        pull_log: PullLog,
    ) -> None:
        """Fetch layers, some at a time; the first failure ends all of them."""
        size = sum(layer.size or 0 for layer in layers)
        if size > self._settings.jobs.image_bytes:
            raise CannotRun(
                f"The image is too large: its layers have {format_size(size)}, and this hub takes "
                f"{format_size(self._settings.jobs.image_bytes)} at most (jobs.image_bytes)."
            )
        await run_in_launch_thread(self._files.check_room, size)
        count = "1 layer" if len(layers) == 1 else f"{len(layers)} layers"
        pull_log.add(f"Pulling {reference}: {count}, {format_size(size)}")
        pull_log.expect(len(layers), size)
        room = asyncio.Semaphore(_PARALLEL)

        async def fetch_one(layer: oci.Descriptor) -> None:
            async with room:
                await fetch(layer)
            pull_log.count_layer()

        try:
            async with asyncio.TaskGroup() as group:
                for layer in layers:
                    group.create_task(fetch_one(layer))
        except* (CannotRun, OSError) as errors:
            raise _first(errors) from None

    async def _fetch(self, pull: _RegistryPull, layer: oci.Descriptor) -> None:
        source = LayerSource(
            scope=pull.scope,
            open_blob=pull.client.open_blob,
            fill=lambda file: self._shared.fill(pull.scopes, layer, file),
            report=pull.log.count_bytes,
        )
        is_done = partial(self._is_fetched, layer.digest, pull.scope)
        is_new = await fetch_layer(self._files, layer, source, is_done=is_done)
        if is_new:
            path = self._files.layer_path(layer.digest)
            await run_in_launch_thread(self._shared.keep, pull.scope, layer.digest, path)

    def _keep(self, scope: str, name: str, image: oci.SelectedImage, tag: KnownTag) -> None:
        self._files.keep_image(image)
        self._files.keep_tag(scope, name, tag)


async def _select(
    top: oci.Descriptor, document: bytes, read: Callable[[oci.Descriptor], Awaitable[bytes]]
) -> oci.SelectedImage:
    selection = oci.select_image(top, document)
    try:
        wanted = next(selection)
        while True:
            wanted = selection.send(await read(wanted))
    except StopIteration as done:
        image: oci.SelectedImage = done.value
        return image
    except ValueError:
        raise CannotRun("The image does not keep to the OCI image specification.") from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
