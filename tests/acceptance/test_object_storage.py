"""A hub whose content lies in a bucket, used by the public clients; and two nodes on one bucket."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import HfApi, HfFileSystem

from acceptance.test_large_files import git
from object_storage import CREDENTIALS, ObjectStorage
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until
from sql.datasets import parquet

# The client sends an open file in a way that its own library warns of.
pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]

LARGE = 11 * 1024 * 1024
PART = 64 * 1024 * 1024
# So many that a table of them is no part of git.
ROWS = 400_000
TWO_TABLES = b"""---
configs:
- config_name: a
  data_files: a.csv
- config_name: b
  data_files: b.parquet
---
"""


@pytest.fixture(scope="module")
def bucket(object_storage: ObjectStorage, shared_place: Place) -> Mapping[str, str]:
    """Variables of a hub whose content lies in a bucket."""
    return {**CREDENTIALS, "HUBLET_STORAGE_URL": object_storage.url(shared_place.folder.name)}


@pytest.fixture(scope="module")
def server(shared_place: Place, bucket: Mapping[str, str]) -> Iterator[Server]:
    with serving(shared_place, variables=bucket) as server:
        yield server


@pytest.fixture
def api(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "client"))
    return HfApi(endpoint=server.address, token=server.token)


def upload(
    api: HfApi,
    repo: str,
    content: bytes,
    folder: Path,
    *,
    name: str = "a b.bin",
    way: str = "lfs",
    repo_type: str = "model",
) -> None:
    """Upload by Git LFS, which the client takes for an open file, or by Xet."""
    (folder / "source").write_bytes(content)
    with (folder / "source").open("rb") as file:
        source = file if way == "lfs" else folder / "source"
        api.upload_file(
            path_or_fileobj=source, path_in_repo=name, repo_id=repo, repo_type=repo_type
        )


def test_large_downloads_come_from_the_bucket(
    server: Server, api: HfApi, object_storage: ObjectStorage, tmp_path: Path
) -> None:
    repo = api.create_repo("redirected", private=True).repo_id
    content = os.urandom(LARGE)
    upload(api, repo, content, tmp_path)
    url = f"{server.address}/{repo}/resolve/main/a%20b.bin"
    headers = {"Authorization": f"Bearer {server.token}"}

    looked = httpx2.head(url, headers=headers)
    assert looked.status_code == 302
    assert looked.headers["X-Linked-Etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert looked.headers["X-Linked-Size"] == str(LARGE)
    assert looked.headers["X-Repo-Commit"] == api.repo_info(repo).sha
    assert looked.headers["Location"].startswith(object_storage.endpoint)
    there = httpx2.get(looked.headers["Location"])
    assert there.headers["Content-Disposition"].startswith('attachment; filename="a b.bin"')
    assert there.content == content

    assert Path(api.hf_hub_download(repo, "a b.bin")).read_bytes() == content
    files = HfFileSystem(endpoint=server.address, token=server.token)
    with files.open(f"{repo}/a b.bin") as file:
        file.seek(5_000_000)
        assert file.read(1000) == content[5_000_000:5_001_000]
    shown = httpx2.get(url, headers=headers | {"Sec-Fetch-Dest": "image"})
    assert (shown.status_code, shown.content) == (200, content)


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_git_lfs_reads_and_writes_through_the_bucket(
    server: Server, api: HfApi, tmp_path: Path
) -> None:
    repo = api.create_repo("git-lfs").repo_id
    mine, theirs = os.urandom(LARGE), os.urandom(LARGE)
    upload(api, repo, mine, tmp_path)
    url = server.address.replace("://", f"://git:{server.token}@")
    git("clone", f"{url}/{repo}", "work", folder=tmp_path)
    work = tmp_path / "work"
    git("lfs", "install", "--local", folder=work)
    git("lfs", "pull", folder=work)
    assert (work / "a b.bin").read_bytes() == mine

    (work / "git.safetensors").write_bytes(theirs)
    git("add", ".", folder=work)
    git("commit", "-m", "Weights", folder=work)
    git("push", folder=work)
    assert Path(api.hf_hub_download(repo, "git.safetensors")).read_bytes() == theirs


def test_xet_uploads_lie_in_the_bucket(server: Server, api: HfApi, tmp_path: Path) -> None:
    repo = api.create_repo("xet").repo_id
    content = os.urandom(LARGE)

    upload(api, repo, content, tmp_path, name="w.bin", way="xet")

    assert Path(api.hf_hub_download(repo, "w.bin")).read_bytes() == content
    streamed = httpx2.get(f"{server.address}/{repo}/resolve/main/w.bin")
    assert (streamed.status_code, streamed.content) == (200, content)


@pytest.mark.parametrize("way", ["lfs", "xet"])
def test_queries_read_tables_from_the_bucket(
    server: Server, api: HfApi, tmp_path: Path, way: str
) -> None:
    repo = api.create_repo(f"tables-{way}", private=True, repo_type="dataset").repo_id
    words = [os.urandom(16).hex() for _ in range(ROWS)]
    lines = "".join(f"{number},{word}\n" for number, word in enumerate(words))
    contents = {
        "README.md": TWO_TABLES,
        "a.csv": f"n,word\n{lines}".encode(),
        "b.parquet": parquet(tmp_path, f"SELECT range AS n, uuid() AS id FROM range({ROWS})"),
    }
    for name, content in contents.items():
        upload(api, repo, content, tmp_path, name=name, way=way, repo_type="dataset")
    headers = {"Authorization": f"Bearer {server.token}"}
    base = f"{server.address}/api/datasets/{repo}"

    views = [{"key": f"{name}/train", "viewName": name} for name in ("a", "b")]
    sql = "SELECT count(*), sum(b.n), max(a.word) FROM a JOIN b USING (n)"
    asked = httpx2.post(
        f"{base}/sql-console/query",
        headers=headers,
        json={"sql": sql, "views": views},
        timeout=SOON_SECONDS,
    )
    assert asked.status_code == 200, asked.text
    assert asked.json()["rows"] == [[ROWS, ROWS * (ROWS - 1) // 2, max(words)]]
    told = httpx2.get(f"{base}/statistics?config=b", headers=headers, timeout=SOON_SECONDS)
    assert told.json()["rows"] == ROWS, told.text
    files = f"{server.address}/datasets/{repo}/resolve/main"
    looked = [httpx2.head(f"{files}/{name}", headers=headers) for name in ("a.csv", "b.parquet")]
    # What came by Git LFS is cut into pieces too, sooner or later.
    assert way == "lfs" or all("X-Xet-Hash" in each.headers for each in looked)


def test_the_storage_is_looked_after(
    server: Server, shared_place: Place, bucket: Mapping[str, str]
) -> None:
    assert server.process.popen.poll() is None
    for command in (("verify",), ("prune",), ("usage",)):
        ended = run_hublet(
            "storage", *command, *shared_place.flags, folder=shared_place.folder, variables=bucket
        )
        assert ended.returncode == 0, ended.stderr + ended.stdout
    examined = run_hublet(
        "doctor", *shared_place.flags, folder=shared_place.folder, variables=bucket
    )
    assert "an object was put, read and deleted" in examined.stdout
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in examined.stdout + examined.stderr
    # What is being uploaded or read lies there for a moment.
    blobs = shared_place.data_dir / "blobs"
    wait_until(lambda: not any(each.is_file() for each in blobs.rglob("*")), seconds=SOON_SECONDS)


def test_serve_refuses_to_start_with_wrong_credentials(
    shared_place: Place, bucket: Mapping[str, str]
) -> None:
    wrong = {**bucket, "AWS_SECRET_ACCESS_KEY": "wrong"}
    ended = run_hublet(
        "serve", "--port", "0", *shared_place.flags, folder=shared_place.folder, variables=wrong
    )

    assert ended.returncode != 0
    assert "does not let these credentials write to the bucket hublet" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_nodes_with_folders_of_their_own_share_content(
    server: Server, shared_place: Place, bucket: Mapping[str, str], api: HfApi, tmp_path: Path
) -> None:
    if shared_place.database_url is None:
        pytest.skip("Two nodes need PostgreSQL.")
    other = Place(folder=tmp_path, database_url=shared_place.database_url)
    other.data_dir.mkdir()
    shutil.copy(shared_place.data_dir / "secret.keys", other.data_dir)
    repo = api.create_repo("nodes").repo_id
    content = os.urandom(PART + 1000)
    request = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    body = {"operation": "upload", "transfers": ["multipart"], "objects": [request]}
    # A browser, which sends its parts to the hub.
    headers = {"Authorization": f"Bearer {server.token}", "Origin": server.address}
    with serving(other, variables=bucket) as second:
        answer = httpx2.post(
            f"{server.address}/{repo}.git/info/lfs/objects/batch", headers=headers, json=body
        )
        action = answer.json()["objects"][0]["actions"]["upload"]
        pieces = {"1": content[:PART], "2": content[PART:]}
        parts = []
        for number, node in (("1", server), ("2", second)):
            href = action["header"][number].replace(server.address, node.address)
            sent = httpx2.put(href, content=pieces[number], timeout=60)
            parts.append({"partNumber": int(number), "etag": sent.headers["ETag"]})
        done = httpx2.post(
            action["href"].replace(server.address, second.address),
            json={"oid": request["oid"], "parts": parts},
            timeout=60,
        )
        assert done.status_code == 200, done.text

        (tmp_path / "file").write_bytes(content[:LARGE])
        name = f"{repo.partition('/')[0]}/shared"
        api.create_bucket(name)
        there = HfApi(endpoint=second.address, token=server.token)
        there.batch_bucket_files(name, add=[(tmp_path / "file", "file")])
        api.download_bucket_files(name, [("file", tmp_path / "back")])
        assert (tmp_path / "back").read_bytes() == content[:LARGE]
