"""Images of this hub's own registry, read from its tables and its store, without any HTTP."""

from contextlib import suppress
from datetime import timedelta

from hublet.core.config import Settings
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.jobs.access import get_delegate_of_job
from hublet.jobs.records import JobRecord
from hublet.registry import service as registry
from hublet.registry.errors import BlobNotFound, ManifestNotFound
from hublet.registry.records import ImageKey, parse_image_name
from hublet.registry.tokens import new_job_token, sign_token
from hublet.repos import service as repos
from hublet.repos.download_counter import DownloadCounter
from hublet.repos.errors import AccessNotGranted, RepoNotFound, RightNeeded
from hublet.repos.records import RepoAddress, RepoType, Right
from hublet.runtime.errors import CannotRun, ImageAbsent
from hublet.runtime.images import oci
from hublet.runtime.images.pulled_files import PartialFile
from hublet.runtime.images.references import ImageReference
from hublet.runtime.images.sources import find_hub_reference
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.records import ImageLogin
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.storage.records import Content

# Between the making of a login and the launch, and for clocks that differ.
_MARGIN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubImage:
    """An image of this hub that the creator of a job may read."""

    key: ImageKey
    # The index or manifest that its reference stands for.
    top: oci.Descriptor
    document: bytes


async def find_hub_image(
    database: Database, job: JobRecord, reference: ImageReference, downloads: DownloadCounter
) -> HubImage:
    """Return an image as the creator of a job sees it now, and count it. Raises CannotRun.

    The rights are those that the creator delegated to the job and still has. A job is one download of
    its image, whoever pulls it and however often the job is tried.
    """
    try:
        async with database.read() as conn:
            key = await _find_key(conn, job, reference)
            manifest = await registry.get_manifest(conn, key, reference.version)
    except (RepoNotFound, AccessNotGranted, RightNeeded, ManifestNotFound):
        raise ImageAbsent(
            f"This hub has no image {str(reference).partition('/')[2]} that the creator of the job "
            "may read: push it, or check the name and the tag."
        ) from None
    except HubError as error:
        raise CannotRun(error.message) from None
    if job.attempt == 1:
        downloads.count(key.repo_id, who=f"job {job.id}")
    top = oci.Descriptor(digest=manifest.digest, size=manifest.size)
    return HubImage(key=key, top=top, document=manifest.content)


async def find_engine_image(
    database: Database, job: JobRecord, name: str, downloads: DownloadCounter
) -> tuple[str, ImageLogin] | None:
    """Return the name of a hub's image by digest, and a login for the engine that pulls it.

    None for any other name. An engine has images that it pulled for others, so whether the creator
    of the job may read this one is asked here, each time. Raises CannotRun.
    """
    reference = find_hub_reference(database.hub.settings, name)
    if reference is None:
        return None
    found = await find_hub_image(database, job, reference, downloads)
    # A cluster tries again and again, until the attempt is given up.
    life = timedelta(seconds=database.hub.settings.jobs.start_seconds) + _MARGIN
    token = new_job_token(job.delegation, parse_image_name(reference.repository), life=life)
    login = ImageLogin(username="job", password=sign_token(token, database.hub.keys))
    return f"{reference.host}/{reference.repository}@{found.top.digest}", login


async def _find_key(conn: Reader, job: JobRecord, reference: ImageReference) -> ImageKey:
    name = parse_image_name(reference.repository)
    creator = await get_delegate_of_job(conn, job)
    address = RepoAddress(type=RepoType.container, namespace=name.namespace, name=name.repo)
    repo = await repos.get(conn, creator, address, Right.read)
    return ImageKey(repo_id=repo.id, path=name.path)


async def read_document(database: Database, image: HubImage, entry: oci.Descriptor) -> bytes:
    """Return a manifest or a configuration of an image. Raises CannotRun."""
    if entry.size is not None and entry.size > oci.DOCUMENT_BYTES:
        raise CannotRun("The image describes itself at too great a length.")
    async with database.read() as conn:
        with suppress(ManifestNotFound):
            return (await registry.get_manifest(conn, image.key, entry.digest)).content
    content = await find_layer(database, image, entry)
    source = ContentSource(open_store(database.hub.settings), content)
    return await run_in_launch_thread(lambda: b"".join(source.pieces(0, content.size)))


async def find_layer(database: Database, image: HubImage, layer: oci.Descriptor) -> Content:
    """Return where the bytes of a blob of this image lie. Raises CannotRun."""
    try:
        async with database.read() as conn:
            return (await registry.get_blob(conn, image.key, layer.digest))[1]
    except BlobNotFound:
        raise CannotRun(
            f"The image has lost its layer {layer.digest}: push the image again."
        ) from None


def copy_layer(
    settings: Settings, content: Content, partial: PartialFile, layer: oci.Descriptor
) -> None:
    """Link a layer of the store, or copy it verified. Blocks. Raises CannotRun and OSError."""
    source = ContentSource(open_store(settings), content)
    # What is unpacked is verified once more, so a link is as good as a copy.
    if source.path is not None and partial.adopt(source.path):
        return
    partial.restart(layer.digest.partition(":")[0])
    try:
        for piece in source.pieces(0, content.size):
            partial.append(bytes(piece))
    except FileNotFoundError:
        raise CannotRun(f"The image has lost its layer {layer.digest}: push it again.") from None
    if not partial.complete(layer.digest):
        raise oci.DamagedImage(layer.digest)
