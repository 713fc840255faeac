"""What the content of repositories says: leaderboards, views of notebooks, headers of weights."""

import json
import math
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from hublet.core import metadata
from hublet.core.database import Database
from hublet.repos import evaluations
from hublet.repos.browse import list_index
from hublet.repos.evaluations import dataset_key, parse_file, read_parameter_count
from people import Headers, a_user, sign_in
from repos.commits import deleted_file, file, header, ndjson
from repos.content import put
from repositories import a_repo

PATH = "/api/datasets/ada/words/leaderboard"
NDJSON = {"content-type": "application/x-ndjson"}


def stated(value: object, *, task: str = "spelling", dataset: str = "ada/words") -> str:
    return f"- dataset:\n    id: {dataset}\n    task_id: {task}\n  value: {value}\n"


async def commit(
    client: httpx2.AsyncClient, who: Headers, name: str, files: Mapping[str, str | None]
) -> None:
    """Write these files to the main branch of a model, or delete those that are None."""
    lines = [
        deleted_file(path) if text is None else file(path, text) for path, text in files.items()
    ]
    response = await client.post(
        f"/api/models/{name}/commit/main", headers=who | NDJSON, content=ndjson(header(), *lines)
    )
    assert response.status_code == 200, response.text


async def a_model(
    client: httpx2.AsyncClient, who: Headers, name: str, results: str, **body: Any
) -> None:
    await a_repo(client, who, name, **body)
    await commit(client, who, name, {".eval_results/words.yaml": results})


async def ranks(
    client: httpx2.AsyncClient, who: Headers | None = None, **query: Any
) -> list[tuple[int, str, float]]:
    response = await client.get(PATH, headers=who or {}, params=query)
    assert response.status_code == 200, response.text
    return [(each["rank"], each["modelId"], each["value"]) for each in response.json()]


@pytest.fixture
async def words(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/words", type="dataset")


async def test_models_are_ranked_by_what_they_state(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    results = """- dataset: {id: Ada/Words, task_id: spelling}
  value: 0.9
  source: {url: "http://hub.test/ada/engine", name: Card}
  notes: no tools
"""
    await a_model(client, ada, "ada/engine", results)
    await a_model(client, ada, "ada/mill", stated(0.5))

    first, second = (await client.get(PATH)).json()
    assert first == {
        "rank": 1,
        "modelId": "ada/engine",
        "author": {
            "_id": user.id,
            "name": "ada",
            "fullname": "ada",
            "avatarUrl": f"http://hub.test/avatars/{user.id}",
            "type": "user",
            "isHf": False,
            "isHfAdmin": False,
            "isMod": False,
            "isPro": False,
        },
        "value": 0.9,
        "verified": False,
        "source": {"url": "http://hub.test/ada/engine", "name": "Card", "isExternal": False},
        "filename": ".eval_results/words.yaml",
        "notes": "no tools",
    }
    assert (second["rank"], second["modelId"], "source" in second) == (2, "ada/mill", False)


async def test_a_dataset_that_nobody_names_has_an_empty_leaderboard(
    client: httpx2.AsyncClient, words: str
) -> None:
    assert await ranks(client) == []
    assert (await client.get("/api/datasets/ada/nothing/leaderboard")).status_code == 404


async def test_a_commit_replaces_what_a_model_stated(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    await a_model(client, ada, "ada/engine", stated(0.9))
    await commit(client, ada, "ada/engine", {".eval_results/words.yaml": stated(0.7)})
    assert await ranks(client) == [(1, "ada/engine", 0.7)]

    await commit(client, ada, "ada/engine", {".eval_results/words.yaml": None})
    assert await ranks(client) == []


async def test_the_best_result_of_a_model_counts_and_equals_share_a_rank(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    await a_model(client, ada, "ada/a", stated(0.5) + stated(0.8))
    await a_model(client, ada, "ada/b", stated(0.8))
    await a_model(client, ada, "ada/c", stated(0.1))

    assert await ranks(client) == [(1, "ada/a", 0.8), (1, "ada/b", 0.8), (3, "ada/c", 0.1)]


async def test_without_a_name_the_task_of_most_models_is_shown(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    await a_model(client, ada, "ada/a", stated(0.5) + stated(3, task="counting"))
    await a_model(client, ada, "ada/b", stated(0.6))

    assert [name for _, name, _ in await ranks(client)] == ["ada/b", "ada/a"]
    assert await ranks(client, task_id="counting") == [(1, "ada/a", 3.0)]
    assert await ranks(client, task_id="singing") == []


async def test_the_card_of_a_model_states_results_too(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    card = """---
model-index:
- name: engine
  results:
  - task: {type: speech}
    dataset: {type: ada/words, name: Words}
    metrics:
    - {type: wer, value: %s}
---
"""
    for name, value in (("ada/a", 12.5), ("ada/b", 7)):
        await a_repo(client, ada, name)
        await commit(client, ada, name, {"README.md": card % value})

    best = (await client.get(PATH)).json()[0]
    assert (best["modelId"], best["filename"], best["lower_is_better"]) == (
        "ada/b",
        "README.md",
        True,
    )
    assert await ranks(client, task_id="speech:wer") == [(1, "ada/b", 7.0), (2, "ada/a", 12.5)]


async def test_models_made_from_another_one_are_shown_when_asked_for(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    await a_model(client, ada, "ada/a", stated(0.5))
    tuned = {"README.md": "---\nbase_model: ada/a\n---\n", ".eval_results/w.yaml": stated(0.9)}
    await a_repo(client, ada, "ada/tuned")
    await commit(client, ada, "ada/tuned", tuned)

    assert [name for _, name, _ in await ranks(client)] == ["ada/a"]
    assert [name for _, name, _ in await ranks(client, base_model="false")] == [
        "ada/tuned",
        "ada/a",
    ]


async def test_nobody_sees_models_that_they_may_not_see(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    await a_model(client, ada, "ada/open", stated(0.5))
    await a_model(client, ada, "ada/closed", stated(0.9), private=True)
    stranger = await sign_in(database, "stranger")
    scoped = await sign_in(database, "ada", scopes=["write-collections"])

    open_only = [(1, "ada/open", 0.5)]
    assert await ranks(client) == await ranks(client, stranger) == open_only
    assert await ranks(client, scoped) == open_only
    assert await ranks(client, ada) == [(1, "ada/closed", 0.9), (2, "ada/open", 0.5)]


async def test_a_private_dataset_hides_its_leaderboard(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/words", type="dataset", private=True)
    stranger = await sign_in(database, "stranger")

    assert (await client.get(PATH)).status_code == 404
    assert (await client.get(PATH, headers=stranger)).status_code == 404
    assert await ranks(client, ada) == []


async def test_results_for_a_former_name_count(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    await a_model(client, ada, "ada/engine", stated(0.9))
    move = {"fromRepo": "ada/words", "toRepo": "ada/letters", "type": "dataset"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200

    response = await client.get("/api/datasets/ada/letters/leaderboard")
    assert [each["modelId"] for each in response.json()] == ["ada/engine"]


async def test_a_wrong_number_of_parameters_is_refused(
    client: httpx2.AsyncClient, words: str
) -> None:
    response = await client.get(PATH, params={"max_params": "many"})

    assert (response.status_code, response.json()["error"]) == (
        400,
        "max_params must be a number of parameters, such as 7B or 500M.",
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [("7B", 7 * 10**9), ("1.5b", 1_500_000_000), ("350m", 350_000_000), ("12", 12)],
)
def test_numbers_of_parameters_have_units(text: str, count: int) -> None:
    assert read_parameter_count(text) == count


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- [", id="no YAML"),
        pytest.param("just a text", id="no object"),
        pytest.param("- value: 3", id="no dataset"),
        pytest.param(stated("true"), id="a boolean"),
        pytest.param(stated(".nan"), id="no number"),
        pytest.param(stated("1e300"), id="beyond all bounds"),
        pytest.param(stated(1, dataset="words"), id="a dataset without an owner"),
        pytest.param("- dataset: {id: ada/words}\n  value: 1", id="no task"),
    ],
)
def test_what_is_no_result_is_skipped(text: str) -> None:
    assert list(parse_file(text, filename="x.yaml")) == []


def test_results_are_bounded() -> None:
    most = evaluations.MOST_RESULTS
    text = stated(1) * (most + 5)

    assert len(list(parse_file(text, filename="x.yaml"))) == most


@pytest.mark.parametrize(
    ("name", "key"), [("Ada/Words", "ada/words"), ("words", None), ("a/b/c", None)]
)
def test_a_dataset_is_named_with_its_owner(name: str, key: str | None) -> None:
    assert dataset_key(name) == key


def test_a_source_is_an_address_of_the_web() -> None:
    text = stated(1) + "  source: {url: 'javascript:alert(1)', name: x}\n"

    assert [each.source for each in parse_file(text, filename="x.yaml")] == [{}]


@pytest.mark.parametrize("private", [False, True])
async def test_a_notebook_has_the_address_of_its_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, *, private: bool
) -> None:
    await a_repo(client, ada, "ada/engine", private=private)
    await commit(client, ada, "ada/engine", {"a b/tour.ipynb": "{}", "notes.txt": "x"})
    path = "/api/models/ada/engine/notebook/main"

    found = await client.get(f"{path}/a b/tour.ipynb", headers=ada)
    head = (await client.get("/api/models/ada/engine", headers=ada)).json()["sha"]
    assert found.json() == {"url": f"http://hub.test/ada/engine/blob/{head}/a%20b/tour.ipynb"}
    stranger = await client.get(f"{path}/a b/tour.ipynb", headers=await sign_in(database, "bob"))
    assert stranger.status_code == (404 if private else 200)
    missing = await client.get(f"{path}/none.ipynb", headers=ada)
    assert missing.status_code == 404
    other = await client.get(f"{path}/notes.txt", headers=ada)
    assert (other.status_code, other.json()["error"]) == (
        400,
        "path: notes.txt is no notebook, whose name would end with .ipynb.",
    )


def weights(**tensors: list[int]) -> bytes:
    """Return a safetensors file with zeros in these shapes."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


async def test_the_header_of_a_safetensors_file_is_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", private=True)
    await put(database, repo_id, {"model.safetensors": weights(wheel=[2, 3]), "a.txt": b"x"})
    path = "/api/models/ada/engine/safetensors-metadata/main"

    found = await client.get(f"{path}/model.safetensors", headers=ada)
    tensor = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    assert found.json() == {
        "sharded": False,
        "header": {"__metadata__": {"format": "pt"}, "wheel": tensor},
        "parameterCount": {"F32": 6},
        "parameterTotal": 6,
    }
    for who in ({}, await sign_in(database, "bob")):
        assert (await client.get(f"{path}/model.safetensors", headers=who)).status_code == 404
    wrong = await client.get(f"{path}/a.txt", headers=ada)
    assert (wrong.status_code, wrong.json()["error"]) == (
        400,
        "path: a.txt is no safetensors file, or damaged.",
    )


async def test_an_index_tells_the_headers_of_all_its_files(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    shards = {"w1.safetensors": weights(a=[2]), "w2.safetensors": weights(b=[3])}
    index = {"metadata": {}, "weight_map": {"a": "w1.safetensors", "b": "w2.safetensors"}}
    files = {f"x/{name}": data for name, data in shards.items()}
    files["x/model.safetensors.index.json"] = json.dumps(index).encode()
    await put(database, repo_id, files)
    path = "/api/models/ada/engine/safetensors-metadata/main/x"

    found = (await client.get(f"{path}/model.safetensors.index.json")).json()
    assert (found["sharded"], found["index"]) == (True, index)
    assert (list(found["headers"]), found["parameterTotal"]) == (list(shards), 5)


async def test_small_models_alone_are_ranked_when_asked_for(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    await a_model(client, ada, "ada/a", stated(0.5))
    await a_model(client, ada, "ada/b", stated(0.9))
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET num_parameters = 7000 WHERE name = 'a'")
        await conn.execute("UPDATE repos SET num_parameters = 9000 WHERE name = 'b'")

    assert [name for _, name, _ in await ranks(client, max_params="8K")] == ["ada/a"]
    assert (await client.get(PATH)).json()[0]["num_parameters"] == 9000


async def test_models_from_before_are_ranked_after_an_upgrade(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    await a_model(client, ada, "ada/engine", stated(0.9))
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM evaluation_results")
        await metadata.set_value(conn, "list_index_filled", "")
    await list_index.fill(database)

    assert await ranks(client) == [(1, "ada/engine", 0.9)]
