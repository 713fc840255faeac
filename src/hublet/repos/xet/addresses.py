"""Addresses of the CAS, and the headers that lead a client to it.

Each repository is a domain of its own: what was uploaded to it is named in its address, and clients
keep what they know of a CAS by its address. With a new epoch all of them forget everything.
"""

from urllib.parse import quote

from hublet.core.database import Reader
from hublet.repos.records import Repo
from hublet.storage.epochs import get_epoch


def domain_of(repo_id: str, epoch: int) -> str:
    """Return the name of a domain in addresses."""
    return f"{repo_id}-{epoch}"


async def cas_url(conn: Reader, repo_id: str) -> str:
    return f"{conn.hub.settings.base_url}/cas/{domain_of(repo_id, await get_epoch(conn))}"


def token_url(base_url: str, repo: Repo, *, right: str, revision: str | None = None) -> str:
    """Return the address of tokens to `read` or `write`; buckets have no revision."""
    url = f"{base_url}/api/{repo.type}s/{repo.full_name}/xet-{right}-token"
    return url if revision is None else f"{url}/{quote(revision, safe='')}"


def linked_headers(*, sha256: str, size: int) -> dict[str, str]:
    """Return the headers of a file whose content lies in the storage."""
    return {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(size)}


async def xet_headers(
    conn: Reader, repo: Repo, xet_hash: str, *, revision: str | None = None
) -> dict[str, str]:
    """Return the headers by which clients download a file through Xet."""
    token = token_url(conn.hub.settings.base_url, repo, right="read", revision=revision)
    reconstruction = f"{await cas_url(conn, repo.id)}/v1/reconstructions/{xet_hash}"
    links = f'<{token}>; rel="xet-auth", <{reconstruction}>; rel="xet-reconstruction-info"'
    return {"X-Xet-Hash": xet_hash, "Link": links}
