"""Files are uploaded in the browser: many in one commit, to LFS what belongs there, to buckets."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.repos.errors import InvalidUpload
from hublet.storage.object_store import open_store
from hublet.web.uploads import MOST_FIELD_BYTES, UploadForm, read_upload
from login.login_pages import a_person, log_in, notices_in
from people import Headers, sign_in
from repos.limits import set_limit
from repositories import a_repo
from web.edit_forms import open_form, read_all, send
from web.file_pages import a_repo_with, get_page
from web.parsed_pages import HTML

FILES = {"README.md": b"# Engine\n"}
UPLOAD = "/ada/engine/upload/main"
BOX = "/buckets/ada/box"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    return (await a_repo_with(client, database, ada, FILES))[0]


def left_on_the_disk(database: Database) -> list[str]:
    """Return what uploads left behind beside what was stored."""
    with open_store(database.hub.settings).new_spool() as spool:
        return [each.name for each in spool.path.parent.iterdir() if each != spool.path]


async def test_several_files_become_one_commit(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    files = [("a.txt", b"a\r\n"), ("sub/é “x”.txt", "ä".encode()), ("empty.txt", b"")]

    response = await send(client, UPLOAD, {"folder": "data", "title": "Data"}, files=files)

    assert (response.status_code, response.headers["location"]) == (
        303,
        "/ada/engine/tree/main/data",
    )
    stored = await read_all(database, repo_id)
    # Uploaded bytes stay as they are.
    assert stored["data/a.txt"] == b"a\r\n"
    assert stored["data/sub/é “x”.txt"] == "ä".encode()
    assert stored["data/empty.txt"] == b""
    commits = (await client.get("/api/models/ada/engine/commits/main", headers=ada)).json()
    assert [each["title"] for each in commits[:2]] == ["Data", "Add files."]


async def test_a_file_of_the_same_path_is_replaced_and_the_same_again_changes_nothing(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    for sentence in ("is in main.", "Nothing changed: main has all of it already."):
        response = await send(client, UPLOAD, files=[("README.md", b"# New\n")])

        assert response.headers["location"] == "/ada/engine/blob/main/README.md"
        assert sentence in (await get_page(client, response.headers["location"])).text
    assert (await read_all(database, repo_id))["README.md"] == b"# New\n"
    response = await send(client, UPLOAD, {"way": "propose"}, files=[("README.md", b"# New\n")])
    assert response.status_code == 422
    assert "there is nothing to propose" in notices_in(response)[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("weights.bin", b"\0\1\2" * 700_000, id="binary, and larger than the memory"),
        pytest.param("model.safetensors", b"text", id="named by .gitattributes"),
        pytest.param("long.txt", b"a" * (10 << 20) + b"b", id="larger than git takes"),
    ],
)
async def test_what_belongs_into_lfs_goes_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str, content: bytes
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")

    response = await send(client, UPLOAD, files=[(name, content), ("notes.txt", b"small")])

    assert response.status_code == 303, response.text
    stored = await read_all(database, repo_id)
    digest = hashlib.sha256(content).hexdigest()
    assert f"oid sha256:{digest}\nsize {len(content)}\n" in stored[name].decode()
    assert stored["notes.txt"] == b"small"
    assert (await client.get(f"/ada/engine/resolve/main/{name}")).content == content
    assert left_on_the_disk(database) == []


async def test_new_attributes_count_for_the_files_beside_them(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    attributes = b"*.dat filter=lfs diff=lfs merge=lfs -text\n"

    await send(client, UPLOAD, files=[("a.dat", b"text"), (".gitattributes", attributes)])

    stored = await read_all(database, repo_id)
    assert stored["a.dat"].startswith(b"version https://git-lfs")
    assert stored[".gitattributes"] == attributes


async def test_a_reader_uploads_a_pull_request_with_large_files(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await a_person(database, "charles")
    client.cookies.clear()
    await log_in(client, "charles")

    response = await send(client, UPLOAD, files=[("a.bin", b"\0\1"), ("b.txt", b"b")])

    assert response.headers["location"] == "/ada/engine/discussions/1"
    assert await read_all(database, repo_id) == FILES
    assert (await client.get("/ada/engine/resolve/refs%2Fpr%2F1/a.bin")).content == b"\0\1"
    page = await get_page(client, "/ada/engine/discussions/1")
    assert "Upload 2 files" in page.text


@pytest.mark.parametrize(
    ("folder", "name", "sentence"),
    [
        pytest.param("", "../x", "'.' or '..'", id="a folder above"),
        pytest.param("..", "x", "'.' or '..'", id="a folder above it"),
        pytest.param("", ".git/hooks/x", "git's own folder", id="git's folder"),
        pytest.param("", "a//b", "no '//'", id="nothing between"),
        pytest.param("README.md", "x", "README.md is a file", id="through a file"),
    ],
)
async def test_paths_keep_the_rules_of_commits(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    folder: str,
    name: str,
    sentence: str,
) -> None:
    response = await send(client, UPLOAD, {"folder": folder}, files=[("ok", b""), (name, b"x")])

    assert response.status_code == 422
    assert sentence in notices_in(response)[0]
    assert await read_all(database, repo_id) == FILES
    assert left_on_the_disk(database) == []


async def test_no_file_and_two_of_one_path_are_refused(
    client: httpx2.AsyncClient, repo_id: str
) -> None:
    nothing = await send(client, UPLOAD, {"title": "Kept"}, files=[("", b"")])
    twice = await send(client, UPLOAD, files=[("a", b"1"), ("a", b"2")])

    assert (nothing.status_code, twice.status_code) == (422, 422)
    assert notices_in(nothing) == ["Choose at least one file."]
    assert 'value="Kept"' in nothing.text
    assert notices_in(twice) == ["a must be there once in a commit."]


async def test_limits_are_said_in_a_sentence(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await set_limit(database, 1000)
    full = await send(client, UPLOAD, files=[("a.bin", b"\0" * 1001)])
    assert full.status_code == 403
    assert "the limit is 1000." in notices_in(full)[0]

    await set_limit(database, None)
    settings = database.hub.settings
    limits = replace(settings.limits, file_bytes=2_000_000)
    database.hub = replace(database.hub, settings=replace(settings, limits=limits))
    large = await send(client, UPLOAD, files=[("b.bin", b"\0" * 2_000_001)])
    assert large.status_code == 413
    assert notices_in(large) == ["b.bin is larger than 2 MB."]
    assert await read_all(database, repo_id) == FILES
    assert left_on_the_disk(database) == []


@pytest.mark.usefixtures("repo_id")
async def test_a_script_gets_told_where_to_go_or_what_is_wrong(client: httpx2.AsyncClient) -> None:
    made = await send(client, UPLOAD, files=[("a.txt", b"a")], Fragment="problem")
    refused = await send(client, UPLOAD, Fragment="problem")

    assert (made.status_code, made.headers["location"]) == (201, "/ada/engine/blob/main/a.txt")
    assert refused.status_code == 422
    assert "Choose at least one file." in refused.text
    assert "<form" not in refused.text
    assert "Fragment" in refused.headers["vary"]


# ---- the reader of forms ----

BOUNDARY = "----form"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def a_body(*parts: tuple[str, bytes]) -> bytes:
    """Return a body of parts, each with what its disposition says behind `form-data`."""
    text = b"".join(
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {says}\r\n\r\n".encode() + data + b"\r\n"
        for says, data in parts
    )
    return text + f"--{BOUNDARY}--\r\n".encode()


async def read_in_pieces(
    database: Database, body: bytes, *, size: int = 7, type_: str = TYPE
) -> tuple[dict[str, str], dict[str, bytes], list[dict[str, str]]]:
    """Return the fields and files of a form, and the fields that were there when it was checked."""
    checked: list[dict[str, str]] = []

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async with read_upload(
        pieces(),
        type_,
        store=open_store(database.hub.settings),
        largest=1 << 30,
        check=lambda fields: checked.append(dict(fields)),
    ) as form:
        assert isinstance(form, UploadForm)
        return form.fields, {each.name: each.content.read_all() for each in form.files}, checked


async def test_a_form_is_read_in_pieces_of_any_size(database: Database) -> None:
    body = a_body(
        ('name="form_token"', b"ab"),
        ('name="file"; filename="a%22b; \\"c.txt"', b"--" + BOUNDARY.encode() + b"\r\nx"),
        ('name="file"; filename=""', b""),
        ('name="title"', "ä\r\n".encode()),
    )
    for size in (1, 3, 1000):
        fields, files, checked = await read_in_pieces(database, body, size=size)

        assert fields == {"form_token": "ab", "title": "ä\r\n"}
        assert files == {'a"b; "c.txt': b"--" + BOUNDARY.encode() + b"\r\nx"}
        # Once, before the first file, with what stands before it.
        assert checked == [{"form_token": "ab"}]


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        pytest.param(a_body(("name=a", b"b"))[:-6], TYPE, id="broken off"),
        pytest.param(b"", TYPE, id="empty"),
        pytest.param(b"a=b", "application/x-www-form-urlencoded", id="another kind"),
        pytest.param(b"a", "multipart/form-data", id="no boundary"),
        pytest.param(a_body(("name=a", b"\0")), TYPE, id="NUL"),
        pytest.param(a_body(("name=a", b"\xff")), TYPE, id="no UTF-8"),
        pytest.param(a_body(*((f"name=a{n}", b"") for n in range(101))), TYPE, id="many fields"),
        pytest.param(a_body(("name=a", b"x" * (MOST_FIELD_BYTES + 1))), TYPE, id="a long field"),
        pytest.param(
            a_body(*((f"name=a; filename={n}", b"") for n in range(1001))), TYPE, id="many files"
        ),
    ],
)
async def test_what_is_no_form_is_refused(database: Database, body: bytes, type_: str) -> None:
    with pytest.raises(HubError) as refusal:
        await read_in_pieces(database, body, size=100_000, type_=type_)

    assert refusal.value.status in {400, 413}
    assert left_on_the_disk(database) == []


async def test_a_refused_token_stops_before_a_byte_of_a_file(database: Database) -> None:
    body = a_body(("name=a", b"b"), ("name=file; filename=x", b"y" * 3_000_000))
    taken = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal taken
        for start in range(0, len(body), 1 << 20):
            taken += 1
            yield body[start : start + (1 << 20)]

    def refuse(_: object) -> None:
        raise InvalidUpload("no")

    with pytest.raises(InvalidUpload):
        async with read_upload(
            pieces(), TYPE, store=open_store(database.hub.settings), largest=1 << 30, check=refuse
        ):
            pass
    assert taken == 1


# ---- buckets ----


@pytest.mark.parametrize("kind", ["bucket", "container"])
async def test_files_are_put_into_a_bucket_and_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/box", type=kind)
    box = f"/{kind}s/ada/box"
    # The page of a container shows its tags.
    top = f"{box}/tree" if kind == "container" else box
    start = await get_page(client, top)
    assert start.links["Upload files"] == f"{box}/upload"

    files = [("a.txt", b"a"), ("deep/b c.bin", b"\0" * 2_000_000)]
    response = await send(client, f"{box}/upload/data", files=files)

    assert (response.status_code, response.headers["location"]) == (303, f"{box}/tree/data")
    page = await get_page(client, response.headers["location"])
    assert "2 files are there." in page.text
    assert page.links["Upload files"] == f"{box}/upload/data"
    content = await client.get(f"{box}/resolve/data/deep/b%20c.bin")
    assert content.content == files[1][1]
    assert left_on_the_disk(database) == []

    file = await get_page(client, f"{box}/tree/data/deep/b%20c.bin")
    response = await send(client, file.links["Delete"])
    assert (response.status_code, response.headers["location"]) == (303, top)
    assert (await client.get(f"{box}/resolve/data/deep/b%20c.bin")).status_code == 404


async def test_a_bucket_says_what_it_does_not_take(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    for files, sentence in (
        ([], "Choose at least one file."),
        ([("../x", b"")], "'.' or '..'"),
        ([("a", b""), ("a/b", b"")], "cannot be a file and a folder"),
    ):
        response = await send(client, f"{BOX}/upload", {"folder": "in"}, files=files)
        assert response.status_code in {409, 422}
        assert sentence in notices_in(response)[0]
        assert 'value="in"' in response.text
    await set_limit(database, 10)
    response = await send(client, f"{BOX}/upload", files=[("big", b"12345678901")])
    assert response.status_code == 403
    assert "the limit is 10." in notices_in(response)[0]


async def test_only_writers_change_a_bucket_and_only_with_their_form(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    await client.put("/api/buckets/ada/box/files/a.txt", headers=ada, content=b"a")
    form = await open_form(client, f"{BOX}/upload")
    question = await open_form(client, f"{BOX}/delete/a.txt")
    for page, token in ((form, {"form_token": "00"}), (question, {"form_token": "00"})):
        assert (await send(client, page, token, files=[("b", b"")])).status_code == 403

    await a_person(database, "charles")
    client.cookies.clear()
    await log_in(client, "charles")
    assert "Upload files" not in (await get_page(client, BOX)).links
    for path in ("upload", "delete/a.txt"):
        assert (await client.get(f"{BOX}/{path}", headers=HTML)).status_code == 403
    for page in (form, question):
        assert (await send(client, page, files=[("b", b"")])).status_code == 403
    tree = (await client.get("/api/buckets/ada/box/tree", headers=ada)).json()
    assert [each["path"] for each in tree] == ["a.txt"]
