"""What one repository uploaded by Xet, tried from another: nothing can be read, used or found out."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.database.engine import Reader
from hublet.storage.object_store import LocalStore, ObjectKey
from hublet.storage.shards import Segment
from hublet.storage.spools import Spool
from hublet.storage.xet_hashes import file_hash, to_text
from people import Headers, sign_in
from repos.content import sha256
from repos.xet import CHUNKS, CONTENT, FILE, XORB_HASH, CasClient, cas_of, shard_of, whole
from repositories import a_repo
from security.xet_transcripts import Transcript, packed_otherwise
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, stored_chunk

NDJSON = {"Content-Type": "application/x-ndjson"}
# Of the same lengths as what ada has, and nobody's.
UNKNOWN = tuple(chunk[::-1] for chunk in CHUNKS)
UNKNOWN_FILE = to_text(file_hash(nodes(UNKNOWN)))


@pytest.fixture
async def eve(database: Database) -> Headers:
    return await sign_in(database, "eve")


@pytest.fixture
async def owned(client: httpx2.AsyncClient, ada: Headers) -> CasClient:
    """The CAS of ada's private repository, which has a file."""
    await a_repo(client, ada, "ada/engine", private=True)
    cas = await cas_of(client, ada)
    await cas.upload()
    return cas


@pytest.fixture
async def foreign(client: httpx2.AsyncClient, owned: CasClient, eve: Headers) -> CasClient:
    """The CAS of eve's own repository, which has nothing."""
    await a_repo(client, eve, "eve/copy")
    return await cas_of(client, eve, repo="models/eve/copy")


def same_but_for(left: httpx2.Response, right: httpx2.Response, *names: tuple[str, str]) -> bool:
    """Tell whether two responses are the same, but that one names this and the other that."""
    text = left.text
    for name, other in names:
        text = text.replace(name, other)
    return (left.status_code, text) == (right.status_code, right.text)


async def test_a_shard_cannot_name_a_xorb_of_another_repository(foreign: CasClient) -> None:
    """Not even with all hashes right, which are no secret."""
    response = await foreign.register(shard_of())
    sentence = f"The xorb {to_text(XORB_HASH)} was not uploaded here."
    assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert same_but_for(
        response,
        await foreign.register(shard_of(UNKNOWN)),
        (to_text(XORB_HASH), to_text(make_xorb(UNKNOWN)[0])),
    )
    assert (await foreign.get(f"/v1/reconstructions/{FILE}")).status_code == 404


async def test_a_part_of_a_file_cannot_come_from_another_repository(foreign: CasClient) -> None:
    own = (b"of my own",)
    assert (await foreign.upload_xorb(own)).status_code == 200
    parts = [whole(own), Segment(XORB_HASH, len(CHUNKS[1]), 1, 2)]
    response = await foreign.register(make_shard([shard_file([*own, CHUNKS[1]], parts)], []))
    assert response.status_code == 400
    assert "was not uploaded here" in response.json()["error"]


async def test_the_same_owner_cannot_either(
    client: httpx2.AsyncClient, owned: CasClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/public")
    public = await cas_of(client, ada, repo="models/ada/public")
    assert (await owned.get(f"/v1/reconstructions/{FILE}")).status_code == 200
    assert (await public.register(shard_of())).status_code == 400
    assert (await public.get(f"/v1/reconstructions/{FILE}")).status_code == 404


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_file_of_another_repository_is_as_unknown_as_any(
    foreign: CasClient, version: str
) -> None:
    response = await foreign.get(f"/{version}/reconstructions/{FILE}")
    assert response.status_code == 404
    other = await foreign.get(f"/{version}/reconstructions/{UNKNOWN_FILE}")
    assert same_but_for(response, other, (FILE, UNKNOWN_FILE))


async def test_a_chunk_query_finds_nothing_of_another_repository(
    owned: CasClient, foreign: CasClient
) -> None:
    known, unknown = (to_text(nodes(each)[0].hash) for each in (CHUNKS, UNKNOWN))
    assert (await owned.get(f"/v1/chunks/default/{known}")).status_code == 200
    response = await foreign.get(f"/v1/chunks/default/{known}")
    assert response.status_code == 404
    assert same_but_for(response, await foreign.get(f"/v1/chunks/default/{unknown}"))


async def test_no_grant_tells_that_the_hub_has_a_xorb(foreign: CasClient) -> None:
    known, unknown = (to_text(make_xorb(each)[0]) for each in (CHUNKS, UNKNOWN))
    response = await foreign.post(f"/v1/xorb-grants/default/{known}")
    assert response.status_code == 404
    assert same_but_for(response, await foreign.post(f"/v1/xorb-grants/default/{unknown}"))


@pytest.mark.parametrize("suffix", ["read", "write"])
async def test_no_token_of_another_repository_works(
    foreign: CasClient, owned: CasClient, suffix: str
) -> None:
    """The address of one domain with the token of another."""
    path = f"{owned.url}/v1/reconstructions/{FILE}"
    if suffix == "write":
        path = f"{owned.url}/v1/xorbs/default/{to_text(XORB_HASH)}"
    method = "GET" if suffix == "read" else "POST"
    response = await foreign.client.request(method, path, headers=foreign.headers)
    sentence = "The access token is not for this address of the CAS."
    assert (response.status_code, response.json()) == (403, {"error": sentence})


async def commit(client: httpx2.AsyncClient, eve: Headers, content: bytes) -> httpx2.Response:
    value = {"path": "a.bin", "algo": "sha256", "oid": sha256(content), "size": len(content)}
    lines = [{"key": "header", "value": {"summary": "Add"}}, {"key": "lfsFile", "value": value}]
    return await client.post(
        "/api/models/eve/copy/commit/main",
        headers=eve | NDJSON,
        content="\n".join(map(json.dumps, lines)),
    )


@pytest.mark.usefixtures("foreign")
async def test_a_commit_cannot_take_the_sha256_of_another_repository(
    client: httpx2.AsyncClient, eve: Headers
) -> None:
    response = await commit(client, eve, CONTENT)
    assert response.status_code == 400
    unknown = b"".join(UNKNOWN)
    other = await commit(client, eve, unknown)
    assert same_but_for(response, other, (sha256(CONTENT), sha256(unknown)))


@pytest.fixture
async def box(client: httpx2.AsyncClient, owned: CasClient, eve: Headers) -> str:
    await client.post("/api/buckets/eve/box", headers=eve, json={})
    return "/api/buckets/eve/box"


def line(kind: str, xet_hash: str, **more: str) -> bytes:
    fields = {"type": kind, "path": "a.bin", "xetHash": xet_hash, "mtime": 0, **more}
    return json.dumps(fields).encode() + b"\n"


SOURCES: list[dict[str, str]] = [
    {"kind": "addFile"},
    {"kind": "copyFile", "sourceRepoType": "model", "sourceRepoId": "ada/engine"},
    {"kind": "copyFile", "sourceRepoType": "bucket", "sourceRepoId": "eve/box"},
]


@pytest.mark.parametrize("source", SOURCES, ids=["add", "from the repository", "from my own"])
async def test_a_bucket_cannot_take_a_file_of_another_repository(
    client: httpx2.AsyncClient, eve: Headers, box: str, source: dict[str, str]
) -> None:
    """Whatever is known of a file but its content: the hash, and where it lies."""

    async def send(name: str) -> httpx2.Response:
        body = line(source["kind"], name, **{k: v for k, v in source.items() if k != "kind"})
        return await client.post(f"{box}/batch", headers=eve | NDJSON, content=body)

    for known, unknown in ((FILE, UNKNOWN_FILE), (sha256(CONTENT), sha256(b"".join(UNKNOWN)))):
        response = await send(known)
        assert response.status_code >= 400
        assert same_but_for(response, await send(unknown), (known, unknown))
    assert (await client.get(f"{box}/tree", headers=eve)).json() == []


async def test_an_upload_tells_nothing_of_what_others_have(foreign: CasClient) -> None:
    for chunks in (CHUNKS, UNKNOWN):
        assert (await foreign.upload_xorb(chunks)).json() == {"was_inserted": True}
        assert (await foreign.register(shard_of(chunks))).json() == {"result": 1}


async def _same_way(transcript: Transcript) -> None:
    await transcript.by_xet(CHUNKS)


async def _packed_otherwise(transcript: Transcript) -> None:
    xorbs, shard = packed_otherwise(CHUNKS)
    cas = await transcript.cas()
    for chunks in xorbs:
        assert (await cas.upload_xorb(chunks)).status_code == 200
    assert (await cas.register(shard)).status_code == 200


async def _compressed_otherwise(transcript: Transcript) -> None:
    await transcript.by_xet(CHUNKS, scheme=1)


async def _by_lfs(transcript: Transcript) -> None:
    await transcript.by_lfs(CHUNKS)


async def _by_lfs_and_waiting(transcript: Transcript) -> None:
    await transcript.send_by_lfs(b"".join(CHUNKS))


async def _by_put(transcript: Transcript) -> None:
    await transcript.by_put(CHUNKS)


WAYS_OF_OTHERS: dict[str, tuple[str, Callable[[Transcript], Awaitable[None]]]] = {
    "the same way": ("models", _same_way),
    "packed otherwise": ("models", _packed_otherwise),
    "compressed otherwise": ("models", _compressed_otherwise),
    "by LFS": ("models", _by_lfs),
    "by LFS, not cut yet": ("models", _by_lfs_and_waiting),
    "by PUT": ("buckets", _by_put),
}
OWN_WAYS: dict[str, tuple[str, Callable[[Transcript, tuple[bytes, ...]], Awaitable[None]]]] = {
    "xet": ("models", Transcript.by_xet),
    "lfs": ("models", Transcript.by_lfs),
    "put": ("buckets", Transcript.by_put),
}


@pytest.mark.parametrize("way", OWN_WAYS.values(), ids=OWN_WAYS)
@pytest.mark.parametrize("others", WAYS_OF_OTHERS.values(), ids=WAYS_OF_OTHERS)
async def test_no_response_depends_on_how_others_brought_the_same_content(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    eve: Headers,
    others: tuple[str, Callable[[Transcript], Awaitable[None]]],
    way: tuple[str, Callable[[Transcript, tuple[bytes, ...]], Awaitable[None]]],
) -> None:
    kind, bring = others
    await a_repo(client, ada, "ada/first", type=kind.removesuffix("s"), private=True)
    await bring(Transcript(client, database, ada, f"{kind}/ada/first"))

    async def transcript(name: str, chunks: tuple[bytes, ...]) -> str:
        kind, upload = way
        await a_repo(client, eve, name, type=kind.removesuffix("s"))
        transcript = Transcript(client, database, eve, f"{kind}/{name}")
        await upload(transcript, chunks)
        return transcript.text

    known, unknown = await transcript("eve/one", CHUNKS), await transcript("eve/two", UNKNOWN)
    assert known == unknown
    assert "xetHash" in known


class Steps:
    """What a request does in the database and in the store, in no order: some runs beside the rest."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()


def _counting(steps: Steps, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def count(self: object, first: object, *rest: Any, **named: Any) -> Any:
        words = first.kind if isinstance(first, ObjectKey) else first
        steps.taken[f"{name} {words if isinstance(words, str) else ''}"] += 1
        return method(self, first, *rest, **named)

    return count


def _kinds_of(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds_of(each)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    steps = Steps()
    for kind in _kinds_of(Reader):
        for name in {"fetch_all", "fetch_one", "execute", "execute_many"} & vars(kind).keys():
            monkeypatch.setattr(kind, name, _counting(steps, name, vars(kind)[name]))
    for name in ("put", "pieces", "stat", "delete"):
        monkeypatch.setattr(LocalStore, name, _counting(steps, name, vars(LocalStore)[name]))
    monkeypatch.setattr(Spool, "write", _counting(steps, "write", Spool.write))
    return steps


async def test_what_another_repository_has_takes_the_same_steps_as_what_is_new(
    foreign: CasClient, steps: Steps
) -> None:
    async def taken(chunks: tuple[bytes, ...]) -> list[Counter[str]]:
        """Upload a xorb and its shard; return the steps of each."""
        seen = []
        for request in (foreign.upload_xorb(chunks), foreign.register(shard_of(chunks))):
            steps.taken = Counter()
            assert (await request).status_code == 200
            seen.append(steps.taken)
        return seen

    # Whatever the first request of all does, such as to start the workers, is not compared.
    await taken((b"something else",))
    known, unknown = await taken(CHUNKS), await taken(UNKNOWN)
    for of_known, of_new in zip(known, unknown, strict=True):
        assert (of_known - of_new, of_new - of_known) == (Counter(), Counter())
    assert known[0]["put xorbs"] == 1


async def test_other_compression_of_a_xorb_leaves_the_file_of_its_first_owner_whole(
    owned: CasClient, foreign: CasClient
) -> None:
    """The hash of a xorb says nothing of how its chunks are compressed."""
    others = b"".join(stored_chunk(chunk, 1) for chunk in CHUNKS)
    response = await foreign.post(f"/v1/xorbs/default/{to_text(XORB_HASH)}", others)
    assert response.status_code == 200
    assert (await foreign.register(shard_of())).status_code == 200
    assert await owned.download(FILE) == CONTENT
    assert await foreign.download(FILE) == CONTENT


async def first_address(cas: CasClient) -> str:
    found = (await cas.get(f"/v1/reconstructions/{FILE}")).json()
    url: str = found["fetch_info"][to_text(XORB_HASH)][0]["url"]
    return url


def changed(url: str, **fields: str) -> str:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query)) | fields
    return parts._replace(query=urlencode(query, safe=",")).geturl()


CHANGES: dict[str, Callable[[str, CasClient], str]] = {
    "a longer range": lambda url, _: changed(url, ranges="0-9999"),
    "a later end": lambda url, _: changed(url, expires="9999999999"),
    "another user": lambda url, _: changed(url, user="grace"),
    "another xorb": lambda url, _: url.replace(to_text(XORB_HASH), "0" * 64),
    "another domain": lambda url, foreign: url.replace(url.split("/v1/")[0], foreign.url),
    "no signature": lambda url, _: changed(url, signature=""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_changed_data_address_is_refused(
    owned: CasClient, foreign: CasClient, change: Callable[[str, CasClient], str]
) -> None:
    url = await first_address(owned)
    asked = {"Range": "bytes=0-9"}
    assert (await owned.client.get(url, headers=asked)).status_code == 206
    response = await owned.client.get(change(url, foreign), headers=asked)
    assert (response.status_code, response.json()["error"]) == (
        403,
        "This address has expired or was changed; ask for the reconstruction again.",
    )


async def test_a_data_address_does_not_outlive_its_five_minutes(owned: CasClient) -> None:
    url = await first_address(owned)
    clock.move(timedelta(minutes=5, seconds=2))
    assert (await owned.client.get(url, headers={"Range": "bytes=0-9"})).status_code == 403


async def test_whoever_loses_the_right_gets_no_new_address(
    client: httpx2.AsyncClient, ada: Headers, eve: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await (await cas_of(client, ada)).upload()
    reader = await cas_of(client, eve, "read")
    assert (await reader.get(f"/v2/reconstructions/{FILE}")).status_code == 200
    body = {"private": True}
    await client.put("/api/models/ada/engine/settings", headers=ada, json=body)
    response = await reader.get(f"/v2/reconstructions/{FILE}")
    assert response.status_code == 403
    assert FILE not in response.text
