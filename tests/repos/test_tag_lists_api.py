"""Lists of tasks and of tags, the known ones and those of public cards."""

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos import list_index_store
from hublet.repos.browse import tag_lists
from people import Headers
from repositories import a_push, a_repo

MODEL_TAGS, DATASET_TAGS = "/api/models-tags-by-type", "/api/datasets-tags-by-type"


async def with_tags(
    client: httpx2.AsyncClient,
    database: Database,
    headers: Headers,
    tags: Sequence[str],
    **repo: Any,
) -> None:
    name = repo.pop("name", "engine")
    repo_id = await a_repo(client, headers, f"ada/{name}", **repo)
    await a_push(database, repo_id, {"README.md": b""}, tags=tags)


async def tags_of(client: httpx2.AsyncClient, path: str, type_: str) -> list[dict[str, str]]:
    response = await client.get(path, params={"type": type_})
    assert response.status_code == 200, response.text
    assert list(response.json()) == [type_]
    tags: list[dict[str, str]] = response.json()[type_]
    return tags


async def test_tags_come_by_type_the_known_and_those_in_use(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    tags = ["summarization", "en", "license:mit", "license:mine", "dataset:ada/words", "steam"]
    await with_tags(client, database, ada, tags)

    listed = (await client.get(MODEL_TAGS)).json()

    assert list(listed) == list(tag_lists.MODEL_TYPES)
    task = {"id": "summarization", "label": "Summarization", "type": "pipeline_tag"}
    assert task | {"subType": "nlp"} in listed["pipeline_tag"]
    assert {"id": "pytorch", "label": "PyTorch", "type": "library"} in listed["library"]
    assert {"id": "en", "label": "English", "type": "language"} in listed["language"]
    license_ids = [tag["id"] for tag in listed["license"]]
    assert (license_ids.count("license:mit"), license_ids[-1]) == (1, "license:mine")
    words = {"id": "dataset:ada/words", "label": "ada/words", "type": "dataset"}
    assert listed["dataset"] == [words]
    assert listed["other"] == [{"id": "steam", "label": "steam", "type": "other"}]


async def test_tags_of_datasets_carry_their_type_in_front(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    tags = ["task_ids:parsing", "language:en", "language:tlh", "other:steam", "steam:"]
    await with_tags(client, database, ada, tags, type="dataset")

    listed = (await client.get(DATASET_TAGS)).json()

    assert list(listed) == list(tag_lists.DATASET_TYPES)
    assert {
        "id": "task_categories:translation",
        "label": "translation",
        "type": "task_categories",
        "subType": "nlp",
    } in listed["task_categories"]
    assert listed["task_ids"] == [
        {"id": "task_ids:parsing", "label": "parsing", "type": "task_ids"}
    ]
    assert {"id": "language:en", "label": "English", "type": "language"} in listed["language"]
    assert listed["language"][-1]["id"] == "language:tlh"
    assert [tag["label"] for tag in listed["size_categories"][:2]] == ["n<1K", "1K<n<10K"]
    assert [tag["id"] for tag in listed["other"]] == ["other:steam", "steam:"]


async def test_one_type_can_be_listed_alone(client: httpx2.AsyncClient) -> None:
    assert len(await tags_of(client, MODEL_TAGS, "license")) > 50
    assert await tags_of(client, DATASET_TAGS, "benchmark") == []


@pytest.mark.parametrize("path", [MODEL_TAGS, DATASET_TAGS])
async def test_an_unknown_type_is_refused(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(path, params={"type": "colour"})

    assert response.status_code == 400
    assert response.json()["error"].startswith("type must be one of")


async def test_tags_of_private_repositories_are_listed_to_nobody(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_tags(client, database, ada, ["secret"], private=True)

    response = await client.get(MODEL_TAGS, headers=ada)

    assert response.json()["other"] == []


async def test_of_each_type_the_most_used_are_listed(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tag_lists, "MOST_OF_TYPE", 2)
    await with_tags(client, database, ada, ["steam", "coal", "arxiv:1"], name="one")
    await with_tags(client, database, ada, ["brass", "coal", "steam"], name="two")

    assert {tag["id"] for tag in await tags_of(client, MODEL_TAGS, "other")} == {"steam", "coal"}
    assert [tag["label"] for tag in await tags_of(client, MODEL_TAGS, "arxiv")] == ["1"]


async def test_the_work_of_a_list_has_an_end(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_index_store, "MOST_TAGGED", 2)
    monkeypatch.setattr(list_index_store, "LONGEST_TAGS", 30)
    for name, tags in {"old": ["old"], "two": ["two"], "new": ["new"]}.items():
        await with_tags(client, database, ada, tags, name=name)
    await with_tags(client, database, ada, ["long" * 10], name="long")

    assert {tag["id"] for tag in await tags_of(client, MODEL_TAGS, "other")} == {"two", "new"}


async def test_tasks_are_listed_by_id(client: httpx2.AsyncClient) -> None:
    response = await client.get("/api/tasks")

    assert response.status_code == 200
    tasks = response.json()
    assert all(task["id"] == id_ for id_, task in tasks.items())
    labels = {id_: task["label"] for id_, task in tasks.items()}
    assert labels["text-classification"] == "Text Classification"
    assert labels["text-to-image"] == "Text-to-Image"
    assert tasks["graph-ml"] == {
        "id": "graph-ml",
        "label": "Graph Machine Learning",
        "summary": "",
        "isPlaceholder": True,
        "demo": {"inputs": [], "outputs": []},
        "libraries": [],
        "datasets": [],
        "metrics": [],
        "models": [],
        "spaces": [],
        "widgetModels": [],
    }


async def test_a_task_names_the_public_models_of_the_moment(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name, visibility in {"first": "public", "liked": "public", "secret": "private"}.items():
        repo = await a_repo(client, ada, f"ada/{name}", visibility=visibility)
        await a_push(database, repo, {"README.md": b""}, card={"pipeline_tag": "translation"})
    await client.post("/api/models/ada/liked/like", headers=ada)

    tasks = (await client.get("/api/tasks", headers=ada)).json()

    assert tasks["translation"]["models"] == [{"id": "ada/liked"}, {"id": "ada/first"}]
    assert tasks["summarization"]["models"] == []


async def test_lists_are_kept_for_a_while(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await tags_of(client, MODEL_TAGS, "other") == []
    await with_tags(client, database, ada, ["steam"])
    assert await tags_of(client, MODEL_TAGS, "other") == []

    monkeypatch.setattr(tag_lists, "KEPT_SECONDS", 0.0)

    assert [tag["id"] for tag in await tags_of(client, MODEL_TAGS, "other")] == ["steam"]
