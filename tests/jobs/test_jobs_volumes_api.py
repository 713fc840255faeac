"""Volumes that a job asks for: where they may lie, who may have them, what they are then."""

import json
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from jobs.jobs_api import PATH, refusal, row_of, run
from people import Headers, an_organization, sign_in
from repos.content import put
from repositories import a_repo


def volume(**changes: Any) -> dict[str, Any]:
    return {"type": "model", "source": "ada/engine", "mountPath": "/data"} | changes


async def a_bucket(client: httpx2.AsyncClient, who: Headers, name: str = "ada/box") -> None:
    response = await client.post(f"/api/buckets/{name}", headers=who, json={"private": True})
    assert response.status_code == 200, response.text


async def commits_of(database: Database, job: dict[str, Any]) -> list[Any]:
    mounts = json.loads((await row_of(database, job["id"]))["spec"])["mounts"]
    return [mount["commit"] for mount in mounts]


async def test_a_revision_is_kept_as_the_commit_that_it_was(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", private=True)
    first = await put(database, repo_id, {"a": b"1"})
    later = await put(database, repo_id, {"a": b"2"}, ref="refs/heads/dev")
    await a_bucket(client, ada)

    job = await run(
        client,
        ada,
        volumes=[
            volume(),
            volume(mountPath="//dev2//x/./y/", revision="dev", path="sub/./folder/", readOnly=True),
            volume(mountPath="/old", revision=first),
            volume(type="bucket", source="ada/box", mountPath="/box"),
            volume(type="bucket", source="ada/box", mountPath="/safe", readOnly=True, path=""),
        ],
    )

    model = {"type": "model", "source": "ada/engine", "readOnly": True}
    bucket = {"type": "bucket", "source": "ada/box"}
    assert job["volumes"] == [
        model | {"mountPath": "/data", "revision": "main"},
        model | {"mountPath": "/dev2/x/y", "revision": "dev", "path": "sub/folder"},
        model | {"mountPath": "/old", "revision": first},
        bucket | {"mountPath": "/box", "readOnly": False},
        bucket | {"mountPath": "/safe", "readOnly": True},
    ]
    assert await commits_of(database, job) == [first, later, first, None, None]


async def test_a_copy_takes_the_revision_as_it_is_now(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, {"a": b"1"})
    job = await run(client, ada, volumes=[volume(path="sub")])
    now = await put(database, repo_id, {"a": b"2"})

    copy = (await client.post(f"{PATH}/{job['id']}/duplicate", headers=ada)).json()

    assert copy["volumes"] == job["volumes"]
    assert await commits_of(database, copy) == [now]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({"mountPath": "data"}, "volumes[0].mountPath must match ^/.", id="relative"),
        *(
            pytest.param(
                {"mountPath": path},
                "volumes[0].mountPath must not be /, nor /proc, /sys, /dev or below them.",
                id=f"at {path}",
            )
            for path in ("/", "//", "/./", "/proc", "/proc/", "//sys", "/dev/shm", "/./dev")
        ),
        *(
            pytest.param(
                {"mountPath": path},
                "volumes[0].mountPath must have no '..' and no control characters.",
                id=f"at {path!r}",
            )
            for path in ("/a/../proc", "/..", "/a\nb")
        ),
        *(
            pytest.param(
                {"path": path},
                "volumes[0].path must be a folder inside the volume, without '..' and no '/' at "
                "its start.",
                id=f"inside {path!r}",
            )
            for path in ("../x", "a/../../b", "/etc", "a\tb")
        ),
        pytest.param({"type": "kernel"}, "volumes[0].type must be one of", id="another type"),
        pytest.param({"source": "engine"}, "volumes[0].source must match", id="without an owner"),
        pytest.param(
            {"readOnly": False},
            "volumes[0]: a repository is mounted read-only, so readOnly must be true",
            id="a repository to write to",
        ),
        pytest.param(
            {"type": "bucket", "revision": "main"},
            "volumes[0]: a bucket has no revision",
            id="a revision of a bucket",
        ),
    ],
)
async def test_a_volume_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, changes: dict[str, Any], sentence: str
) -> None:
    await a_repo(client, ada, "ada/engine")

    status, error = await refusal(client, ada, volumes=[volume(**changes)])

    assert status == 400
    assert error.startswith(sentence)


async def test_two_volumes_do_not_lie_in_one_place(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    volumes = [volume(), volume(mountPath="/other"), volume(mountPath="/data/")]
    sentence = "volumes[2].mountPath is that of another volume."
    assert await refusal(client, ada, volumes=volumes) == (400, sentence)


async def test_there_are_only_so_many_volumes(client: httpx2.AsyncClient, ada: Headers) -> None:
    volumes = [volume(mountPath=f"/{number}") for number in range(101)]

    sentence = "volumes: a job has at most 100 of them."
    assert await refusal(client, ada, volumes=volumes) == (400, sentence)
    assert (await refusal(client, ada, volumes=[]))[0] == 400


async def test_what_the_creator_cannot_read_is_not_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/secret", private=True)
    await a_repo(client, bob, "bob/app", type="space", private=True)
    await a_bucket(client, bob, "bob/box")

    for place in (
        {"type": "model", "source": "bob/secret"},
        {"type": "model", "source": "ada/nothing"},
        {"type": "dataset", "source": "bob/secret"},
        {"type": "bucket", "source": "bob/box"},
    ):
        sentence = f"there is no {place['type']} {place['source']}, or you cannot read it."
        refused = await refusal(client, ada, volumes=[volume(**place)])
        assert refused == (404, f"volumes[0]: {sentence}")
    space = {"dockerImage": "", "spaceId": "bob/app"}
    sentence = "spaceId: there is no space bob/app, or you cannot see it."
    assert await refusal(client, ada, **space) == (404, sentence)
    assert (await run(client, bob, path="/api/jobs/bob", **space))["spaceId"] == "bob/app"


async def test_a_gate_stands_before_a_volume_too(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await put(database, await a_repo(client, bob, "bob/gated"), {"a": b"1"})
    response = await client.put(
        "/api/models/bob/gated/settings", headers=bob, json={"gated": "manual"}
    )
    assert response.status_code == 200, response.text
    gated = volume(source="bob/gated")

    refused = await refusal(client, ada, volumes=[gated])
    sentence = "volumes[0]: there is no model bob/gated, or you cannot read it."
    assert refused == (404, sentence)
    await run(client, bob, path="/api/jobs/bob", volumes=[gated])


async def test_a_token_that_reads_no_repositories_mounts_no_private_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", private=True)
    await put(database, repo_id, {"a": b"1"})
    runner = await sign_in(database, "ada", scopes=["jobs"])
    reader = await sign_in(database, "ada", scopes=["jobs", "read-repos"])

    assert (await refusal(client, runner, volumes=[volume()]))[0] == 404
    assert (await refusal(client, reader, volumes=[volume()]))[0] == 200


async def test_a_bucket_is_written_to_by_those_who_may(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.read}
    await an_organization(database, "engines", members=members)
    await a_bucket(client, ada, "engines/box")
    bob = await sign_in(database, "bob")
    box = volume(type="bucket", source="engines/box")

    assert await refusal(client, bob, path="/api/jobs/bob", volumes=[box]) == (
        403,
        "volumes[0]: you may not write to the bucket engines/box; mount it with readOnly.",
    )
    job = await run(client, bob, path="/api/jobs/bob", volumes=[box | {"readOnly": True}])
    assert job["volumes"][0]["readOnly"] is True


@pytest.mark.parametrize("revision", ["nowhere", "f" * 40, "refs/heads/nowhere"])
async def test_a_revision_that_is_not_there_is_said(
    client: httpx2.AsyncClient, database: Database, ada: Headers, revision: str
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, {"a": b"1"})

    body = {"dockerImage": "x", "flavor": "cpu-basic", "volumes": [volume(revision=revision)]}
    response = await client.post(PATH, headers=ada, json=body)

    assert response.status_code == 404
    assert response.headers["x-error-code"] == "RevisionNotFound"
    assert response.json()["error"] == f"volumes[0]: ada/engine has no revision {revision}."
