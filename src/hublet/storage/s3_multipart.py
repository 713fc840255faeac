"""Multipart uploads whose parts clients send to a bucket themselves, at presigned addresses.

The client's requests alone are not enough to make an object: the hub begins and completes it. So once
it is complete nobody can change it, which an address to put a whole object would allow for hours.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus

from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.storage.errors import StoreUnavailable
from hublet.storage.s3_location import S3Credentials, S3Location, presign

# Of the protocol.
LARGEST_PART = 5 << 30

log = get_logger("storage")

_UPLOAD_ID = re.compile(r"<UploadId>([^<]+)</UploadId>")
_PART = re.compile(r"<Part>(.*?)</Part>", re.DOTALL)
_NUMBER = re.compile(r"<PartNumber>(\d+)</PartNumber>")
_ETAG = re.compile(r"<ETag>([^<]+)</ETag>")
_LIFE = timedelta(minutes=5)
# To complete an upload of many parts takes its time.
_COMPLETED_SECONDS = 300
_CONNECT_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipartUploads:
    """The calls that a library for whole objects does not have."""

    location: S3Location
    credentials: S3Credentials

    def part_url(self, path: str, upload: str, number: int, *, life: timedelta) -> str:
        """Return where a client may put a part; whoever has the address may."""
        query = {"partNumber": str(number), "uploadId": upload}
        return self._address("PUT", path, query, life=life)

    async def create(self, path: str) -> str:
        """Begin an upload of the object at a path; return its id."""
        text = await self._request("POST", path, {"uploads": ""})
        found = _UPLOAD_ID.search(text)
        if found is None:
            raise StoreUnavailable
        return found[1]

    async def list_etags(self, path: str, upload: str) -> list[str]:
        """Return the ETags of the parts that arrived; nothing when the upload is over."""
        text = await self._request("GET", path, {"uploadId": upload})
        parts = [(_NUMBER.search(part), _ETAG.search(part)) for part in _PART.findall(text)]
        known = {int(number[1]): etag[1] for number, etag in parts if number and etag}
        return [known[number] for number in sorted(known)]

    async def complete(self, path: str, upload: str, etags: Sequence[str]) -> bool:
        """Make the object of its parts; return False when the server does not know them so."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
            for number, etag in enumerate(etags, start=1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
        text = await self._request("POST", path, {"uploadId": upload}, body=body)
        # It may answer 200 before it knows.
        return "<Error>" not in text and "CompleteMultipartUploadResult" in text

    async def abort(self, path: str, upload: str) -> None:
        """Drop an upload with its parts; one that is over is fine."""
        await self._request("DELETE", path, {"uploadId": upload})

    def _address(self, method: str, path: str, query: dict[str, str], *, life: timedelta) -> str:
        return presign(
            method,
            self.location.object_url(path),
            self.credentials,
            region=self.location.region,
            life=life,
            query=query,
        )

    async def _request(
        self, method: str, path: str, query: dict[str, str], *, body: str | None = None
    ) -> str:
        """Return the text of the answer, nothing where it is that the request is wrong."""
        # A hub without a bucket starts without it.
        import aiohttp  # noqa: PLC0415 - as above
        from yarl import URL  # noqa: PLC0415 - as above

        # Signed and quoted already: it must be sent as it is.
        address = self._address(method, path, query, life=_LIFE)
        timeout = aiohttp.ClientTimeout(total=_COMPLETED_SECONDS, connect=_CONNECT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(method, URL(address, encoded=True), data=body) as response,
            ):
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("object storage failed", path=path, error=type(error).__name__)
            raise StoreUnavailable from None
        if response.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:
            return ""
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            log.warning("object storage failed", path=path, status=response.status)
            raise StoreUnavailable
        return text
