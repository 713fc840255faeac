"""Access to images: the container repository behind a name, for callers who have a right to it."""

from hublet.core.database import Database, Reader
from hublet.core.errors import NotAllowed
from hublet.registry.errors import (
    ImageMoved,
    ImageNotFound,
    InvalidImageName,
    RegistryAccessDenied,
    RegistryTokenNeeded,
)
from hublet.registry.records import ImageName
from hublet.registry.tokens import RegistryIdentity, scope_for, token_needed
from hublet.repos import lifecycle
from hublet.repos import service as repos
from hublet.repos.errors import InvalidRepoName, RepoExists, RepoNotFound
from hublet.repos.lifecycle import NewRepo
from hublet.repos.records import Repo, RepoAddress, RepoType, Right


async def get_repo(conn: Reader, identity: RegistryIdentity, name: ImageName, right: Right) -> Repo:
    """Return the repository of an image when the caller has this right to it now.

    Who has not logged in is told to, whether there is such an image or not. Everybody else learns
    only of images that they may see. A former name is enough to read.
    """
    _check_scope(conn, identity, name, right)
    if identity.is_read_only and right not in {Right.see, Right.read}:
        raise RegistryAccessDenied("The token of a job only pulls the image of the job.")
    address = RepoAddress(type=RepoType.container, namespace=name.namespace, name=name.repo)
    try:
        repo = await repos.get(conn, identity.caller, address, right)
    except RepoNotFound:
        raise _refusal(conn, identity, name, right) or ImageNotFound(str(name)) from None
    except NotAllowed as error:
        denied = RegistryAccessDenied(error.message)
        raise _refusal(conn, identity, name, right) or denied from None
    if right is Right.write and not repos.is_named(repo, address):
        raise ImageMoved(str(name), new_name=repo.full_name.lower())
    return repo


def _check_scope(conn: Reader, identity: RegistryIdentity, name: ImageName, right: Right) -> None:
    if not identity.reaches(name):
        raise token_needed(
            conn.hub.settings,
            f"The token was not asked for {name}.",
            scopes=[scope_for(name, right)],
            error="insufficient_scope",
        )


def _refusal(
    conn: Reader, identity: RegistryIdentity, name: ImageName, right: Right
) -> RegistryTokenNeeded | None:
    """Return the challenge for somebody who has not logged in; None for everybody else."""
    if identity.caller is not None:
        return None
    is_push = right not in {Right.see, Right.read}
    what = f"To push to {name}," if is_push else f"There is no image {name} for everybody:"
    return token_needed(
        conn.hub.settings,
        f"{what} log in with your user name and a token of the hub.",
        scopes=[scope_for(name, right)],
    )


async def get_or_create_repo(
    database: Database, identity: RegistryIdentity, name: ImageName
) -> Repo:
    """Return the repository that an image is pushed to; the first push creates it."""
    try:
        async with database.read() as conn:
            return await get_repo(conn, identity, name, Right.write)
    except ImageNotFound:
        return await _create_repo(database, identity, name)


async def _create_repo(database: Database, identity: RegistryIdentity, name: ImageName) -> Repo:
    assert identity.caller is not None  # noqa: S101 - others were challenged
    new = NewRepo(type=RepoType.container, namespace=name.namespace, name=name.repo)
    try:
        return await lifecycle.create(database, identity.caller, new)
    except InvalidRepoName as error:
        # Its rule is what follows the sentence's colon.
        raise InvalidImageName(error.message.partition(": ")[2].rstrip(".")) from None
    except RepoExists:
        # Clients push several layers at once, and another request was first; or it is one that the
        # caller may not see, in an organization where they may create others.
        async with database.read() as conn:
            return await get_repo(conn, identity, name, Right.write)
    except NotAllowed as error:
        raise RegistryAccessDenied(error.message) from None


async def find_mount_source(
    conn: Reader, identity: RegistryIdentity, *, source: ImageName, target: ImageName
) -> Repo | None:
    """Return the repository that a blob is mounted from; None when the caller may not read it.

    A token that was not asked for it is no answer to that question: its holder asks for another.
    """
    if not identity.reaches(source):
        raise token_needed(
            conn.hub.settings,
            f"The token was not asked for {source}.",
            scopes=[scope_for(target, Right.write), scope_for(source, Right.read)],
            error="insufficient_scope",
        )
    try:
        return await get_repo(conn, identity, source, Right.read)
    except (ImageNotFound, RegistryAccessDenied, RegistryTokenNeeded):
        return None
