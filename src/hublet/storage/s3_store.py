"""Store in a bucket of S3 or of what speaks its protocol. It needs the extra `hublet[s3]`.

Its library is used by its synchronous calls only, in threads: results that it hands to an event loop
from threads of its own abort the process when they come while the interpreter ends.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import S3Store as Bucket

from hublet.core.logs import get_logger
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import ObjectKey, ObjectStore, StoredObject
from hublet.storage.spools import Spool

log = get_logger("storage")

_PIECE_BYTES = 1 << 18
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_DELETED_AT_ONCE = 1000
# A server that was restarted is back within seconds; one that says nothing is asked again.
_RETRIES: Any = {
    "max_retries": 10,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(seconds=0.2),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
_CONNECTION: Any = {
    "connect_timeout": timedelta(seconds=5),
    "timeout": timedelta(seconds=30),
    "allow_http": True,
}


class S3Store(ObjectStore):
    """A bucket, or a prefix of one. Objects that are being uploaded lie in a folder first."""

    def __init__(self, url: str, incoming: Path) -> None:
        self._url = url
        self.incoming = incoming

    def __reduce__(self) -> tuple[type["S3Store"], tuple[str, Path]]:
        # Worker processes get it as an argument, and make a connection of their own.
        return S3Store, (self._url, self.incoming)

    @cached_property
    def _bucket(self) -> Bucket:
        parts = urlsplit(self._url)
        options = dict(parse_qsl(parts.query))
        prefix = unquote(parts.path).strip("/")
        return Bucket(
            parts.netloc,
            prefix=prefix or None,
            **({"endpoint": options["endpoint"]} if "endpoint" in options else {}),
            region=options.get("region", "us-east-1"),
            virtual_hosted_style_request=False,
            client_options=_CONNECTION,
            retry_config=_RETRIES,
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

    def put_bytes(self, key: ObjectKey, data: bytes) -> None:
        with _errors(key):
            obstore.put(self._bucket, _path(key), data)

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

    def remove_interrupted(self, *, before: datetime) -> int:
        removed = 0
        for path in self.incoming.iterdir() if self.incoming.is_dir() else ():
            status = path.stat()
            if status.st_mtime < before.timestamp():
                removed += status.st_size
                path.unlink(missing_ok=True)
        parts = [each for each in self.list("parts") if each.modified_at < before]
        self.delete([each.key for each in parts], before=before)
        return removed + sum(each.size for each in parts)

    def local_path(self, key: ObjectKey) -> Path | None:  # noqa: ARG002 - as the interface says
        return None

    def presigned_url(self, key: ObjectKey, *, life: timedelta) -> str | None:
        with _errors(key):
            return obstore.sign(self._bucket, "GET", _path(key), life)


def _path(key: ObjectKey) -> str:
    return f"{key.kind}/{key.name}"


@contextmanager
def _errors(key: ObjectKey) -> Iterator[None]:
    """Raise FileNotFoundError without the object, StoreUnavailable for all else that goes wrong."""
    try:
        yield
    except NotFoundError:
        raise FileNotFoundError(key.name) from None
    except obstore.exceptions.BaseError as error:
        # Its text may tell a signed address; the kind of the error says enough.
        log.warning(
            "object storage failed", kind=key.kind, name=key.name, error=type(error).__name__
        )
        raise StoreUnavailable from None
