"""Uploads by Xet without end, to repositories and a bucket, by a client that notes what was acknowledged."""

import hashlib
import json
import random
import threading
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import httpx2

from faults.content import NDJSON, KnownRepo, Person, create_repo
from faults.forked_hubs import ForkedHub
from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import file_hash, to_text
from hublet.storage.xorbs import read_chunks
from storage.xet_content import make_shard, make_xorb, nodes, shard_file, shard_xorb

BOX = "box"


class XetLoad:
    """One client, which goes on with every new server; `files` are those that were acknowledged."""

    def __init__(self, person: Person, *, seed: int) -> None:
        self.person = person
        self.chance = random.Random(seed)
        # By the address of the file's API and its path.
        self.files: dict[tuple[str, str], bytes] = {}
        self.hashes: dict[tuple[str, str], str] = {}
        self.repos: list[KnownRepo] = []
        self.sent = 0
        # How many requests were answered, by all servers.
        self.answers = 0
        self.failures: list[BaseException] = []

    def prepare(self, client: httpx2.Client) -> None:
        self.repos = [create_repo(client, f"engine-{number}") for number in range(2)]
        client.post(f"/api/buckets/{self.person.name}/{BOX}", json={}).raise_for_status()

    def run_until_killed(self, server: ForkedHub, done: threading.Event) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(server, done))
        thread.start()
        return thread

    def _run(self, server: ForkedHub, done: threading.Event) -> None:
        try:
            with self.person.client(server) as client:
                client.event_hooks = {"response": [self._count]}
                while not done.is_set():
                    self._send_one(client)
        except httpx2.TransportError:
            # The hub was killed; whether it did what was asked, nobody knows.
            return
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failures.append(error)

    def _count(self, _response: httpx2.Response) -> None:
        self.answers += 1

    def _send_one(self, client: httpx2.Client) -> None:
        self.sent += 1
        chunks = self._new_chunks()
        path = f"{self.sent}.bin"
        if self.chance.random() < 0.3:
            self._put(client, path, b"".join(chunks))
            return
        repo = self.chance.choice(self.repos)
        self._upload(client, repo.api, chunks)
        if self.chance.random() < 0.2:
            # Registered, and never used.
            return
        self._commit(client, repo, path, b"".join(chunks))
        self.hashes[repo.api, path] = to_text(file_hash(nodes(chunks)))

    def _new_chunks(self) -> list[bytes]:
        return [
            self.chance.randbytes(self.chance.randrange(9_000, 30_000))
            for _ in range(self.chance.randrange(1, 5))
        ]

    def _upload(self, client: httpx2.Client, api: str, chunks: Sequence[bytes]) -> None:
        cas, headers = _access(client, api, "write")
        digest, data = make_xorb(chunks)
        sent = client.post(
            f"{cas}/v1/xorbs/default/{to_text(digest)}", content=data, headers=headers
        )
        assert sent.status_code == 200, sent.text
        content = b"".join(chunks)
        whole = Segment(digest, len(content), 0, len(chunks))
        sha256 = hashlib.sha256(content).hexdigest()
        shard = make_shard([shard_file(chunks, [whole], sha256=sha256)], [shard_xorb(chunks)])
        registered = client.post(f"{cas}/v1/shards", content=shard, headers=headers)
        assert registered.status_code == 200, registered.text

    def _commit(self, client: httpx2.Client, repo: KnownRepo, path: str, content: bytes) -> None:
        oid = hashlib.sha256(content).hexdigest()
        value = {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}
        lines = [{"key": "header", "value": {"summary": path}}, {"key": "lfsFile", "value": value}]
        answer = client.post(
            f"{repo.api}/commit/main", content="\n".join(map(json.dumps, lines)), headers=NDJSON
        )
        assert answer.status_code == 200, answer.text
        self.files[repo.api, path] = content

    def _put(self, client: httpx2.Client, path: str, content: bytes) -> None:
        api = f"/api/buckets/{self.person.name}/{BOX}"
        body = {"type": "addFile", "path": path, "content": b64encode(content).decode()}
        answer = client.post(f"{api}/batch", content=json.dumps(body), headers=NDJSON)
        assert answer.status_code == 200, answer.text
        self.files[api, path] = content

    def check(self, client: httpx2.Client, keys: Sequence[tuple[str, str]]) -> None:
        """Insist that files have their bytes, by plain HTTP and by Xet."""
        for key in keys:
            api, path = key
            place = api.removeprefix("/api/").removeprefix("models/")
            revision = "" if place.startswith("buckets/") else "main/"
            answer = client.get(f"/{place}/resolve/{revision}{path}", follow_redirects=True)
            assert answer.status_code == 200, answer.text
            assert answer.content == self.files[key]
            if key in self.hashes:
                assert _reconstructed(client, api, self.hashes[key]) == self.files[key]


def _access(client: httpx2.Client, api: str, right: str) -> tuple[str, dict[str, str]]:
    answer = client.get(f"{api}/xet-{right}-token/main")
    assert answer.status_code == 200, answer.text
    token: dict[str, Any] = answer.json()
    # The address is that of the public base URL, which no other part of the test needs.
    path = "/cas/" + token["casUrl"].split("/cas/")[1]
    return path, {"Authorization": f"Bearer {token['accessToken']}"}


def _reconstructed(client: httpx2.Client, api: str, file: str) -> bytes:
    cas, headers = _access(client, api, "read")
    found = client.get(f"{cas}/v1/reconstructions/{file}", headers=headers)
    assert found.status_code == 200, found.text
    content = b""
    for term in found.json()["terms"]:
        for fetch in found.json()["fetch_info"][term["hash"]]:
            first, last = fetch["url_range"]["start"], fetch["url_range"]["end"]
            path = "/cas/" + fetch["url"].split("/cas/")[1]
            data = client.get(path, headers={"Range": f"bytes={first}-{last}"})
            assert data.status_code == 206, data.text
            chunks = list(read_chunks(data.content))
            start = term["range"]["start"] - fetch["range"]["start"]
            content += b"".join(
                chunks[start : start + term["range"]["end"] - term["range"]["start"]]
            )
    return content
