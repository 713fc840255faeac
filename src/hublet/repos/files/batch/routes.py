"""HTTP for many changes of files at once."""

from typing import Any

from fastapi import Request

from hublet.core.http import Db, Router
from hublet.core.http.bodies import streams
from hublet.repos.auth import MOVED
from hublet.repos.files.auth import BUCKET, FilesRepo, body_of, of_containers
from hublet.repos.files.batch import service
from hublet.repos.files.batch.reading import read_batch
from hublet.repos.files.batch.schemas import BatchDone, BatchRefused
from hublet.tokens.auth import AnyCaller

buckets = Router(tags=["buckets"], responses=MOVED)

streams("POST", r"/api/(buckets|containers)/[^/]+/[^/]+/batch")

_TAKES_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}


@buckets.post(
    f"{BUCKET}/batch", responses={422: {"model": BatchRefused}}, openapi_extra=_TAKES_LINES
)
async def change_bucket_files(
    request: Request, database: Db, caller: AnyCaller, address: FilesRepo
) -> BatchDone:
    """Put, copy and delete up to 1000 files of a bucket: all of it is done, or nothing.

    One operation in JSON on each line: `addFile` with `content` in base64 or the `sha256` of a
    file in the bucket, `copyFile` with the `sha256` of a file in another repository, or
    `deleteFile`; each with its `path`.
    """
    operations = await read_batch(body_of(request))
    await service.run(database, caller, address, operations)
    return BatchDone(processed=len(operations), succeeded=len(operations))


containers = of_containers(buckets)
