"""Signed links: URLs that authorize one act on one object of one repository."""

from datetime import timedelta
from hmac import compare_digest
from urllib.parse import urlencode

from hublet.core.clock import micros
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing
from hublet.repos.errors import InvalidLink

# A large file takes hours over a slow connection, and its last part begins only then.
UPLOAD_LIFE = timedelta(hours=12)
DOWNLOAD_LIFE = timedelta(hours=1)

_KIND = "lfs-link"
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    # One of upload, part, complete, download.
    act: str
    repo_id: str
    oid: str
    # Of the object, or of the one part.
    size: int
    # Which part, counted from one; or, to complete, how many there are.
    part: int = 0
    # To complete: the direct upload, if it is one.
    upload: str = ""

    def path(self) -> str:
        path = f"/api/lfs/{self.repo_id}/{self.oid}"
        ends = {"part": f"/parts/{self.part}", "complete": "/complete"}
        return path + ends.get(self.act, "")

    def text(self, expires: int) -> str:
        return (
            f"{self.act} {self.repo_id} {self.oid} {self.size} {self.part} {expires}{self.upload}"
        )


def sign(link: Link, keys: KeyRing, *, base_url: str) -> str:
    """Return the signed URL, which is valid until its life ends."""
    life = DOWNLOAD_LIFE if link.act == "download" else UPLOAD_LIFE
    expires = micros() // _SECOND + life // timedelta(seconds=1)
    query: dict[str, int | str] = {"size": link.size, "expires": expires}
    if link.act == "complete":
        query["count"] = link.part
    if link.upload:
        query["upload"] = link.upload
    signature = keys.digest(_KIND, link.text(expires)).hex()
    return f"{base_url}{link.path()}?{urlencode({**query, 'signature': signature})}"


def check_link(link: Link, keys: KeyRing, *, expires: int, signature: str) -> None:
    """Refuse a link that `sign` did not make, or that has expired."""
    good = keys.digests(_KIND, link.text(expires))
    known = [compare_digest(each.hex().encode(), signature.encode()) for each in good]
    if not any(known) or expires * _SECOND < micros():
        raise InvalidLink
