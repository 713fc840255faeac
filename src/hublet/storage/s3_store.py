"""Store in a bucket of S3 or of what speaks its protocol. It needs the extra `hublet[s3]`.

Its library is used by its synchronous calls only, in threads: results that it hands to an event loop
from threads of its own abort the process when they come while the interpreter ends.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError
from obstore.store import S3Store as Bucket

from hublet.core import clock
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.core.startup import CannotStart
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import ObjectKey, ObjectStore, StoredObject, old_parts
from hublet.storage.s3_location import S3Credentials, S3Location, find_credentials, presign
from hublet.storage.s3_multipart import LARGEST_PART, MultipartUploads
from hublet.storage.spools import Spool

log = get_logger("storage")

_PIECE_BYTES = 1 << 18
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_DELETED_AT_ONCE = 1000
_CONNECT_SECONDS = 5
# Of one try, whatever it transfers: at most a part, or what a download reads before it is resumed.
_TRY_SECONDS = 30
# A server that was restarted is back within seconds; one that says nothing is given up after these.
_PATIENCE_SECONDS = 60
_PROBE_SECONDS = 5
_PROBES = "probes"
# The code of an error of S3, in the text of the library's.
_CODE = re.compile(r"<Code>(\w+)</Code>")
_REFUSALS = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}


def connect(
    where: S3Location, known: S3Credentials | None, *, patience: int = _PATIENCE_SECONDS
) -> Bucket:
    """Return a bucket; what it asks of the server is given up after so many seconds."""
    keys: Any = {}
    if known is not None:
        keys = {
            "access_key_id": known.access_key,
            "secret_access_key": known.secret_key,
            "session_token": known.session_token,
        }
        keys = {name: value for name, value in keys.items() if value is not None}
    options: Any = {
        "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, patience)),
        "timeout": timedelta(seconds=min(_TRY_SECONDS, patience)),
        "allow_http": where.endpoint.startswith("http://"),
    }
    return Bucket(
        where.bucket,
        prefix=where.prefix or None,
        endpoint=where.bucket_url if where.is_virtual_hosted else where.endpoint,
        region=where.region,
        virtual_hosted_style_request=where.is_virtual_hosted,
        client_options=options,
        retry_config=_retries(patience),
        **keys,
    )


class S3Store(ObjectStore):
    """A bucket, or a prefix of one. Objects that are being uploaded lie in a folder first."""

    can_put_aside = False

    def __init__(self, url: str, incoming: Path) -> None:
        self._url = url
        self.incoming = incoming
        self.location = S3Location.parse(url)

    def __reduce__(self) -> tuple[type["S3Store"], tuple[str, Path]]:
        # Worker processes get it as an argument, and make a connection of their own.
        return S3Store, (self._url, self.incoming)

    @cached_property
    def credentials(self) -> S3Credentials | None:
        """Return what signs addresses; None where the machine has a role instead."""
        return find_credentials()

    @cached_property
    def _bucket(self) -> Bucket:
        return self._connect(patience=_PATIENCE_SECONDS)

    def _connect(self, *, patience: int) -> Bucket:
        return connect(self.location, self.credentials, patience=patience)

    def probe(self) -> timedelta:
        """Put, read and delete an object; return by how much the server's clock is ahead.

        Raises CannotStart with a sentence that says what is wrong.
        """
        path = f"{_PROBES}/{new_object_id()}"
        bucket = self._connect(patience=_PROBE_SECONDS)
        try:
            obstore.put(bucket, path, b"probe")
            written = obstore.head(bucket, path)["last_modified"]
            obstore.get(bucket, path).bytes()
            obstore.delete(bucket, path)
        except BaseError as error:
            raise CannotStart(self._explain(error)) from None
        return written - (clock.now() - clock.offset())

    def _explain(self, error: BaseError) -> str:
        """Return what to do about an error, without its text: that may show a signature."""
        found = _CODE.search(str(error))
        code = found[1] if found else ""
        bucket, host = self.location.bucket, urlsplit(self.location.endpoint).netloc
        if code == "RequestTimeTooSkewed":
            return f"The clock of this machine differs from that of {host}: correct it."
        if code == "NoSuchBucket" or isinstance(error, NotFoundError):
            return f"There is no bucket {bucket} at {host}: create it, or correct storage.url."
        if code in _REFUSALS or isinstance(error, PermissionDeniedError):
            return (
                f"{host} does not let these credentials write to the bucket {bucket} ({code or 403}"
                "): correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the bucket's policy."
            )
        if self.credentials is None:
            return (
                f"There are no credentials for the bucket {bucket}, or {host} does not answer: set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            )
        return (
            f"The object storage at {host} does not answer as it should ({code or 'no answer'}): "
            "see that it runs, and that storage.url is right."
        )

    def new_spool(self, *, size: int | None = None, hashed: bool = True) -> Spool:
        return Spool(self.incoming, size=size, hashed=hashed)

    def put(self, key: ObjectKey, spool: Spool, *, durable: bool = True) -> None:  # noqa: ARG002 - a bucket always is
        spool.flush()
        with _errors(key):
            obstore.put(
                self._bucket,
                _path(key),
                spool.path,
                chunk_size=_PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )
        # A folder takes the file itself: so nobody looks after it any more.
        spool.close()

    def put_bytes(self, key: ObjectKey, data: bytes) -> None:
        with _errors(key):
            obstore.put(self._bucket, _path(key), data)

    def copy(self, source: ObjectKey, target: ObjectKey, *, size: int) -> None:
        with _errors(source):
            if size <= LARGEST_PART:
                obstore.copy(self._bucket, _path(source), _path(target))
            else:
                # The server copies no more at once.
                obstore.put(self._bucket, _path(target), self.pieces(source, 0, size))

    def multipart_uploads(self) -> MultipartUploads | None:
        if self.credentials is None:
            return None
        return MultipartUploads(location=self.location, credentials=self.credentials)

    def pieces(self, key: ObjectKey, start: int, end: int) -> Iterator[bytes]:
        if start >= end:
            return
        with _errors(key):
            found = obstore.get(self._bucket, _path(key), options={"range": (start, end)})
            for piece in found.stream(min_chunk_size=_PIECE_BYTES):
                start += len(piece)
                yield bytes(piece)
        if start < end:
            raise EOFError(f"{key.name} is shorter than it was said to be.")

    def read(self, key: ObjectKey) -> bytes:
        with _errors(key):
            return bytes(obstore.get(self._bucket, _path(key)).bytes())

    def stat(self, key: ObjectKey) -> StoredObject | None:
        try:
            with _errors(key):
                found = obstore.head(self._bucket, _path(key))
        except FileNotFoundError:
            return None
        return StoredObject(key=key, size=found["size"], modified_at=found["last_modified"])

    def list(self, kind: str, prefix: str = "") -> Iterator[StoredObject]:
        folder = prefix.rpartition("/")[0]
        start = len(kind) + 1
        with _errors(ObjectKey(kind, prefix)):
            pages = obstore.list(
                self._bucket, f"{kind}/{folder}".rstrip("/"), chunk_size=_DELETED_AT_ONCE
            )
            for found in chain.from_iterable(pages):
                name = found["path"][start:]
                if name.startswith(prefix):
                    yield StoredObject(
                        key=ObjectKey(kind, name),
                        size=found["size"],
                        modified_at=found["last_modified"],
                    )

    def delete(self, keys: Iterable[ObjectKey], *, before: datetime) -> None:
        old = (key for key in keys if self._is_older(key, before))
        while paths := [_path(key) for key, _ in zip(old, range(_DELETED_AT_ONCE), strict=False)]:
            with _errors(ObjectKey("", "")):
                obstore.delete(self._bucket, paths)

    def _is_older(self, key: ObjectKey, before: datetime) -> bool:
        found = self.stat(key)
        return found is not None and found.modified_at < before

    def remove_interrupted(
        self, *, before: datetime, kept: AbstractSet[ObjectKey] = frozenset()
    ) -> int:
        removed = 0
        for path in self.incoming.iterdir() if self.incoming.is_dir() else ():
            status = path.stat()
            if status.st_mtime < before.timestamp():
                removed += status.st_size
                path.unlink(missing_ok=True)
        parts = old_parts(self, before, kept)
        self.delete([each.key for each in parts], before=before)
        return removed + sum(each.size for each in parts)

    def local_path(self, key: ObjectKey) -> Path | None:  # noqa: ARG002 - as the interface says
        return None

    def presigned_url(
        self,
        key: ObjectKey,
        *,
        life: timedelta,
        media_type: str | None = None,
        disposition: str | None = None,
    ) -> str | None:
        if self.credentials is None:
            # Only the library knows the credentials of a role, and it signs no parameters.
            with _errors(key):
                return obstore.sign(self._bucket, "GET", _path(key), life)
        query = {
            "response-content-type": media_type,
            "response-content-disposition": disposition,
        }
        return presign(
            "GET",
            self.location.object_url(_path(key)),
            self.credentials,
            region=self.location.region,
            life=life,
            query={name: value for name, value in query.items() if value is not None},
        )


def _retries(patience: int) -> Any:
    return {
        "max_retries": 20,
        "retry_timeout": timedelta(seconds=patience),
        "backoff": {
            "init_backoff": timedelta(seconds=0.2),
            "max_backoff": timedelta(seconds=5),
            "base": 2,
        },
    }


def _path(key: ObjectKey) -> str:
    return f"{key.kind}/{key.name}"


@contextmanager
def _errors(key: ObjectKey) -> Iterator[None]:
    """Raise FileNotFoundError without the object, StoreUnavailable for all else that goes wrong."""
    try:
        yield
    except NotFoundError:
        raise FileNotFoundError(key.name) from None
    except BaseError as error:
        # Its text may tell a signed address; the kind of the error says enough.
        log.warning(
            "object storage failed", kind=key.kind, name=key.name, error=type(error).__name__
        )
        raise StoreUnavailable from None
