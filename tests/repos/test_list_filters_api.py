"""Lists by tags, links, parameters and trend, and what they show of related repositories."""

import json
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.database.engine import Reader
from hublet.core.queue import tasks
from hublet.repos import download_counter, list_index_store, safetensors
from hublet.repos.browse import list_index, lists
from hublet.repos.browse import store as lists_store
from hublet.repos.browse.records import LinkFilter, ListOrder, ListSort, ParameterRange, RepoFilter
from hublet.repos.cards import citation_of, description_of, tags_of
from hublet.repos.records import LinkKind, Reach, RepoType
from hublet.repos.safetensors import SafetensorsHeader, Tensor
from people import Headers, sign_in
from repositories import a_push, a_repo
from workers import drain


async def a_card(
    client: httpx2.AsyncClient,
    database: Database,
    owner: Headers,
    name: str,
    card: Mapping[str, Any],
    **options: Any,
) -> str:
    """Create a repository with a card."""
    type_ = RepoType(options.get("type", "model"))
    repo_id = await a_repo(client, owner, name, **options)
    await a_push(database, repo_id, {"README.md": b""}, card=card, tags=tags_of(dict(card), type_))
    return repo_id


def weights(**shapes: Sequence[int]) -> bytes:
    """Return a safetensors file with the header of these tensors."""
    header = {name: {"dtype": name, "shape": list(shape)} for name, shape in shapes.items()}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


async def get(
    client: httpx2.AsyncClient, path: str, query: str = "", headers: Headers | None = None
) -> list[dict[str, Any]]:
    response = await client.get(f"/api/{path}?{query}", headers=headers or {})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def names(
    client: httpx2.AsyncClient, path: str, query: str = "", headers: Headers | None = None
) -> list[str]:
    return [repo["id"] for repo in await get(client, path, query, headers)]


@pytest.fixture
async def linked(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """Models on each other, and spaces that use them; the private ones are bob's."""
    bob = await sign_in(database, "bob")
    base = {"datasets": ["ada/words"]}
    await a_card(client, database, ada, "ada/base", base)
    tuned = {"base_model": "ADA/base", "datasets": ["ada/words", "ada/more"]}
    await a_card(client, database, ada, "ada/tuned", tuned)
    await a_card(client, database, bob, "bob/secret", {"base_model": ["ada/base"]}, private=True)
    app = {"models": ["ada/base"], "datasets": ["ada/words"]}
    await a_card(client, database, ada, "ada/app", app, type="space")
    await a_card(client, database, ada, "ada/other", {"models": ["ada/tuned"]}, type="space")
    await a_card(client, database, ada, "ada/alone", {}, type="space")
    await a_card(client, database, bob, "bob/hidden", app, type="space", visibility="private")
    return bob


@pytest.mark.parametrize(
    ("path", "query", "found"),
    [
        ("spaces", "models=ada/base", ["ada/app"]),
        ("spaces", "models=Ada/BASE", ["ada/app"]),
        ("spaces", "models=ada/base&datasets=ada/words", ["ada/app"]),
        ("spaces", "models=ada/base&models=ada/tuned", []),
        ("spaces", "datasets=ada/words", ["ada/app"]),
        ("spaces", "linked=true", ["ada/other", "ada/app"]),
        ("spaces", "linked=false", ["ada/alone", "ada/other", "ada/app"]),
        ("spaces", "models=nobody/nothing", []),
        ("spaces", "models=nothing", []),
        ("models", "filter=dataset:ada/words", ["ada/tuned", "ada/base"]),
        ("models", "filter=dataset:ada/words&filter=dataset:ada/more", ["ada/tuned"]),
        ("models", "filter=base_model:ada/base", ["ada/tuned"]),
        ("models", "filter=base_model:ADA/base&sort=likes&direction=-1", ["ada/tuned"]),
        ("models", "search=ada&search=tun", ["ada/tuned"]),
        ("models", "search=ada%20tun", ["ada/tuned"]),
        ("models", "apps=vllm&apps=ollama", []),
        ("models", "inference=warm", []),
        ("models", "inference_provider=all", []),
    ],
)
@pytest.mark.parametrize("most_read", [2000, -1])
async def test_lists_are_filtered_by_links_and_tags_whether_few_match_or_many(
    client: httpx2.AsyncClient,
    linked: Headers,
    monkeypatch: pytest.MonkeyPatch,
    *,
    path: str,
    query: str,
    found: list[str],
    most_read: int,
) -> None:
    monkeypatch.setattr(lists, "_MOST_READ", most_read)

    assert await names(client, path, query) == found


async def test_links_of_private_repositories_are_seen_by_who_sees_these(
    client: httpx2.AsyncClient, linked: Headers
) -> None:
    query = "expand=spaces&expand=childrenModelCount&author=ada"

    [tuned, base] = await get(client, "models", query)
    [_, own] = await get(client, "models", query, linked)
    alone = (await client.get(f"/api/models/ada/base?{query}", headers=linked)).json()

    assert set(base) == {"_id", "id", "spaces", "childrenModelCount"}
    assert (base["spaces"], base["childrenModelCount"]) == (["ada/app"], 1)
    assert (tuned["spaces"], tuned["childrenModelCount"]) == (["ada/other"], 0)
    assert own == alone
    assert (own["spaces"], own["childrenModelCount"]) == (["ada/app", "bob/hidden"], 2)
    assert await names(client, "spaces", "models=ada/base", linked) == ["bob/hidden", "ada/app"]


async def test_links_follow_a_repository_to_its_new_name(
    client: httpx2.AsyncClient, ada: Headers, linked: Headers
) -> None:
    moved = {"fromRepo": "ada/base", "toRepo": "ada/root", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=moved)).status_code == 200

    [root] = await get(client, "models", "search=root&expand=childrenModelCount&expand=spaces")

    assert (root["spaces"], root["childrenModelCount"]) == (["ada/app"], 1)
    assert await names(client, "spaces", "models=ada/root") == ["ada/app"]


async def test_links_are_those_of_the_last_card_and_go_with_the_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_card(client, database, ada, "ada/app", {"models": ["a/b"]}, type="space")
    await a_push(database, repo_id, {"README.md": b"2"}, card={"models": ["c/d"]}, tags=["New"])
    changed = [await names(client, "spaces", f"models={name}") for name in ("a/b", "c/d")]
    tagged = await names(client, "spaces", "filter=new")
    body = {"type": "space", "name": "app", "organization": "ada"}
    await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)

    async with database.read() as conn:
        left = await conn.fetch_value("SELECT count(*) FROM repo_links")
    assert (changed, tagged, left) == ([[], ["ada/app"]], ["ada/app"], 0)


async def test_an_old_hub_fills_in_what_lists_filter_by(
    client: httpx2.AsyncClient, database: Database, linked: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_index, "_BATCH", 2)
    monkeypatch.setattr(tasks, "_BATCHES_OF_TASK", 2)
    async with database.transaction() as conn:
        # As if the hub were of a version without links.
        before = await conn.fetch_all("SELECT * FROM repo_links ORDER BY kind, target, repo_id")
        await conn.execute("DELETE FROM tasks")
        await conn.execute("DELETE FROM repo_links")
        await conn.execute("INSERT INTO facts (name, value) VALUES ('list_index_filled', '')")
        await list_index.schedule_filling(conn)
        assert not await list_index.is_filled(conn)
    meanwhile = await names(client, "models", "filter=dataset:ada/more")
    await drain(database)

    async with database.read() as conn:
        after = await conn.fetch_all("SELECT * FROM repo_links ORDER BY kind, target, repo_id")
        assert await list_index.is_filled(conn)
    assert [tuple(row) for row in after] == [tuple(row) for row in before]
    assert meanwhile == ["ada/tuned"]


@pytest.fixture
async def sized(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """A small and a large model, one without weights and a gated one."""
    index = {"weight_map": {"a": "first.safetensors", "b": "second.safetensors"}}
    files = {
        "small": {"model.safetensors": weights(F32=[1000, 3], I8=[])},
        "large": {
            "model.safetensors.index.json": json.dumps(index).encode(),
            "first.safetensors": weights(BF16=[4_000_000_000]),
            "second.safetensors": weights(BF16=[2_000_000_000]),
            "third.safetensors": weights(BF16=[7]),
        },
        "none": {"README.md": b""},
        "broken": {"model.safetensors": weights(F32=[2**40] * 16)},
        "gated": {"model.safetensors": weights(F32=[3000])},
    }
    for name, content in files.items():
        await a_push(database, await a_repo(client, ada, f"ada/{name}"), content)
    await client.put("/api/models/ada/gated/settings", headers=ada, json={"gated": "auto"})
    await drain(database)
    return ada


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("min:0", ["ada/large", "ada/small"]),
        ("min:6B,max:128B", ["ada/large"]),
        ("max:128B,min:6B", ["ada/large"]),
        ("max:3.001K", ["ada/small"]),
        ("max:3k", []),
        ("min:3001,max:3001", ["ada/small"]),
        ("min:0.006T", ["ada/large"]),
        ("min:6001M", []),
        ("min:999999999999999T", []),
    ],
)
@pytest.mark.parametrize("most_read", [2000, -1])
async def test_models_are_filtered_by_their_parameters(
    client: httpx2.AsyncClient,
    sized: Headers,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    found: list[str],
    most_read: int,
) -> None:
    monkeypatch.setattr(lists, "_MOST_READ", most_read)

    assert await names(client, "models", f"num_parameters={asked}") == found


@pytest.mark.parametrize(
    "asked", ["6B", "min:", "min:six", "min:1,min:2", "min:1,", "min:-1", "least:1", "min:1Q"]
)
async def test_nonsense_for_parameters_is_refused(client: httpx2.AsyncClient, asked: str) -> None:
    response = await client.get("/api/models", params={"num_parameters": asked})

    assert (response.status_code, response.json()) == (
        400,
        {
            "error": "num_parameters must be in the form min:6B,max:128B; either part may be "
            "missing, and numbers may end in K, M, B or T."
        },
    )


async def test_other_bad_filters_are_refused(client: httpx2.AsyncClient) -> None:
    answers = [
        await client.get(f"/api/models?{query}")
        for query in (
            "num_parameters=min:2,max:1",
            f"apps={'x' * 201}",
            "linked=perhaps",
            "expand=x",
        )
    ]

    assert [answer.status_code for answer in answers] == [400] * 4
    assert answers[0].json()["error"] == "num_parameters must not have a larger min than max."
    assert answers[1].json()["error"].startswith("apps")


async def test_parameters_are_told_by_type_and_those_behind_a_gate_to_who_passed(
    client: httpx2.AsyncClient, sized: Headers
) -> None:
    listed = await get(client, "models", "expand=safetensors")
    path = "/api/models/ada/gated?expand=safetensors&expand=likes"
    anonymous = (await client.get(path)).json()
    own = (await client.get(path, headers=sized)).json()

    assert {repo["id"]: repo["safetensors"] for repo in listed if "safetensors" in repo} == {
        "ada/large": {"parameters": {"BF16": 6_000_000_000}, "total": 6_000_000_000},
        "ada/small": {"parameters": {"F32": 3000, "I8": 1}, "total": 3001},
    }
    assert "safetensors" not in anonymous
    assert own["safetensors"] == {"parameters": {"F32": 3000}, "total": 3000}


async def test_parameters_change_with_the_files_and_come_with_a_copy(
    client: httpx2.AsyncClient, database: Database, sized: Headers
) -> None:
    body = {"repository": "ada/copy"}
    copied = await client.post("/api/models/ada/small/duplicate", headers=sized, json=body)
    assert copied.status_code == 200, copied.text
    [small] = await get(client, "models", "search=small")
    await a_push(database, small["_id"], {"README.md": b"no weights any more"})
    await drain(database)

    assert await names(client, "models", "num_parameters=max:1M") == ["ada/copy"]


@pytest.mark.parametrize(
    ("paths", "indexed", "found"),
    [
        (["model.safetensors", "x.safetensors"], (), ("model.safetensors",)),
        (["x.safetensors"], (), ("x.safetensors",)),
        (["x.safetensors", "y.safetensors"], (), ()),
        (["x.safetensors", "y.safetensors"], ("y.safetensors",), ("y.safetensors",)),
        (["x.safetensors"], ("y.safetensors",), ("x.safetensors",)),
        (["model-1-of-2.safetensors"] * 201, (), ()),
        (["a/model.safetensors"], (), ()),
    ],
)
def test_the_files_of_a_model_are_told_apart(
    paths: list[str], indexed: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert safetensors.weights_among(paths, indexed=indexed) == found


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"weight_map": 1}', b'{"weight_map": {"a": 1}}', b"[" * 10_000]
)
def test_a_damaged_index_names_nothing(text: bytes) -> None:
    assert safetensors.shards_in_index(text) == ()


def test_made_up_types_are_not_counted() -> None:
    tensors = tuple(Tensor(name=str(n), dtype=str(n), shape=(1,)) for n in range(65))

    assert safetensors.count_parameters([SafetensorsHeader(tensors=tensors, metadata={})]) == {}


async def test_the_trend_is_what_was_liked_and_downloaded_of_late(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    ids = {name: await a_repo(client, ada, f"ada/{name}") for name in ("idle", "used", "liked")}
    await client.post("/api/models/ada/liked/like", headers=ada)
    counter = download_counter.DownloadCounter(database)
    for number in range(3):
        counter.count(ids["used"], who=str(number))
    await counter.flush()
    scores = []
    for days in (0, 3.5, 4.5):
        clock.move(timedelta(days=days))
        await list_index.update_scores(database)
        listed = await get(client, "models", "sort=trendingScore&expand=trendingScore")
        scores.append([(repo["id"], repo["trendingScore"]) for repo in listed])

    assert scores[0] == [("ada/liked", 10), ("ada/used", 3), ("ada/idle", 0)]
    assert [score for _, score in scores[1]] in ([5, 2, 0], [5, 1, 0])
    assert {score for _, score in scores[2]} == {0}


async def test_scores_are_computed_every_hour(database: Database) -> None:
    async with database.transaction() as conn:
        await list_index.schedule_scores(conn)
        await list_index.schedule_scores(conn)
    await drain(database)

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT due_at FROM tasks WHERE kind = $1", list_index.SCORE)
    assert len(rows) == 1
    assert timedelta(0) < clock.from_micros(rows[0]["due_at"]) - clock.now() <= timedelta(hours=1)


ALL_OF_MODELS = """
author baseModels cardData childrenModelCount config createdAt disabled downloads downloadsAllTime
evalResults gated inferenceProviderMapping lastModified library_name likes model-index pipeline_tag
private safetensors sha siblings spaces tags trendingScore usedStorage widgetData
"""
ALL_OF_DATASETS = """
author cardData citation createdAt description disabled downloads downloadsAllTime gated
lastModified likes mainSize paperswithcode_id private sha siblings tags trendingScore usedStorage
"""
ALL_OF_SPACES = """
author cardData createdAt datasets disabled lastModified likes models private runtime sdk sha
siblings tags trendingScore usedStorage
"""
# What has no meaning here, or not for this repository, and is left out.
OTHERS = "gguf gitalyUid inference mask_token region resourceGroup subdomain transformersInfo"
README = b"""---
license: mit
---
# Words

Many of them.

```bibtex
@misc{words, title={Words}}
```
"""
CARD = {
    "base_model": "ada/base",
    "pipeline_tag": "fill-mask",
    "library_name": "torch",
    "model-index": [{"name": "x"}],
    "widget": [{"text": "hi"}],
    "paperswithcode_id": "words",
    "models": ["ada/base"],
    "datasets": ["ada/words"],
}


@pytest.mark.parametrize(
    ("type_", "every"),
    [("model", ALL_OF_MODELS), ("dataset", ALL_OF_DATASETS), ("space", ALL_OF_SPACES)],
)
async def test_every_property_can_be_asked_for_in_lists_and_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str, every: str
) -> None:
    repo_id = await a_repo(client, ada, "ada/x", type=type_)
    config = {"model_type": "bert", "architectures": ["Bert"], "vocab_size": 5}
    files = {
        "README.md": README,
        "config.json": json.dumps(config).encode(),
        "model.safetensors": weights(F32=[2]),
    }
    await a_push(database, repo_id, files, card=CARD, tags=["a"])
    await drain(database)
    query = "&".join(f"expand={name}" for name in [*every.split(), *OTHERS.split()])

    [listed] = await get(client, f"{type_}s", query)
    alone = (await client.get(f"/api/{type_}s/ada/x?{query}")).json()

    assert listed == alone
    assert set(listed) == {"_id", "id", *every.split()}
    if type_ == "model":
        assert listed["baseModels"] == ["ada/base"]
        assert listed["config"] == {"model_type": "bert", "architectures": ["Bert"]}
        assert (listed["evalResults"], listed["inferenceProviderMapping"]) == ([], [])
    if type_ == "dataset":
        assert listed["mainSize"] == sum(map(len, files.values()))
        assert listed["citation"] == "@misc{words, title={Words}}"
        assert listed["description"].startswith("# Words Many of them.")
    if type_ == "space":
        assert (listed["models"], listed["datasets"]) == (["ada/base"], ["ada/words"])


async def test_flags_add_to_what_lists_show_and_their_pages_are_short(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for number in range(51):
        await a_repo(client, ada, f"ada/model-{number}")

    plain = await client.get("/api/models?limit=60")
    full = await client.get("/api/models?limit=60&full=true")
    rest = await client.get(full.links["next"]["url"])
    config = await client.get("/api/models?limit=1&config=true")

    assert [len(each.json()) for each in (plain, full, rest)] == [51, 50, 1]
    assert full.json()[0] == plain.json()[0] | {"siblings": [{"rfilename": ".gitattributes"}]}
    assert config.json() == plain.json()[:1]


def test_a_card_is_described_by_its_beginning() -> None:
    assert description_of("") is None
    assert description_of("a\n\n b") == "a b"
    assert description_of("a " * 1000) == ("a " * 500).strip() + "…"
    assert citation_of("@misc{outside}") is None
    assert citation_of("```\nno entry\n```") is None


class Explainer:
    """A connection that has the statement of a list explained instead of run."""

    def __init__(self, conn: Reader, *, kind: str) -> None:
        self._conn, self._word = conn, {"sqlite": "EXPLAIN QUERY PLAN"}.get(kind, "EXPLAIN")
        self.plan = ""

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"{self._word} {sql}", *values)
        self.plan = "\n".join(str(row[-1]) for row in rows)
        return []


COMMON = LinkFilter(kind=LinkKind.tag, targets=("common",))
LARGE = ParameterRange(least=1, most=2)


@pytest.mark.parametrize("sort", list(ListSort))
@pytest.mark.parametrize(
    ("filters", "index"),
    [
        pytest.param({}, "public_repos_by_", id="no filter"),
        pytest.param({"candidate_ids": ("1" * 24,)}, "sqlite_autoindex_repos_1", id="few match"),
        pytest.param({"links": (COMMON,)}, "public_repos_by_", id="many have a link"),
        pytest.param({"parameters": LARGE}, "public_repos_by_", id="many have a size"),
    ],
)
async def test_no_list_reads_all_repositories(
    database: Database, filters: dict[str, Any], index: str, sort: ListSort
) -> None:
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
        explainer: Any = Explainer(conn, kind=database.kind)
        order = ListOrder(sort=sort)
        wanted = RepoFilter(type=RepoType.model, **filters)
        await lists_store.list_of_type(explainer, wanted, None, order=order, after=None, limit=10)

    if database.kind == "sqlite":
        assert f"SEARCH r USING INDEX {index}" in explainer.plan
        assert "SCAN r" not in explainer.plan
    else:
        # With no rows, PostgreSQL takes one index for as good as another.
        assert "Seq Scan on repos" not in explainer.plan


async def test_what_a_link_matches_is_read_in_the_order_of_its_index(database: Database) -> None:
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            await conn.execute("SET LOCAL enable_seqscan = off")
            await conn.execute("SET LOCAL enable_bitmapscan = off")
        explainer: Any = Explainer(conn, kind=database.kind)
        await list_index_store.list_linked_ids(
            explainer, RepoType.model, LinkKind.tag, ("rare", "common"), limit=10
        )

    # Neither is sorted, so neither is read to its end, nor is another target.
    if database.kind == "sqlite":
        assert explainer.plan.count("(type=? AND kind=? AND target=?)") == 2, explainer.plan
        assert "TEMP B-TREE" not in explainer.plan
    else:
        assert explainer.plan.count("Index Cond: ") == 2, explainer.plan
        assert "Sort" not in explainer.plan


@pytest.mark.parametrize("sort", list(ListSort))
async def test_private_repositories_of_each_owner_are_read_in_the_order_of_the_list(
    database: Database, sort: ListSort
) -> None:
    owners = ("1" * 24, "2" * 24)
    reach = Reach(
        user_id=owners[0], readable=owners, where_created=(), created_with="", administered=owners
    )
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            await conn.execute("SET LOCAL enable_seqscan = off")
            await conn.execute("SET LOCAL enable_sort = off")
        explainer: Any = Explainer(conn, kind=database.kind)
        wanted = RepoFilter(type=RepoType.model)
        order = ListOrder(sort=sort)
        await lists_store.list_of_type(explainer, wanted, reach, order=order, after=None, limit=10)

    if database.kind == "sqlite":
        parts = re.findall(r"CO-ROUTINE (part_\d+)\n(.+?)\nSCAN \1\b", explainer.plan, re.DOTALL)
        read = [re.findall(r"SEARCH r USING INDEX (\w+)_repos_by_\w+", part) for _, part in parts]
        assert read == [["public"], ["private"], ["private"]]
        # Only what the parts have found is sorted.
        assert not any("TEMP B-TREE" in part for _, part in parts)
    else:
        assert "Seq Scan on repos" not in explainer.plan


MANY = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 6000)
INSERT INTO repos (id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at,
                   updated_at)
SELECT CAST(n AS TEXT), 'model', CAST(n % 20 AS TEXT), CAST(n AS TEXT), CAST(n AS TEXT),
    CASE WHEN n % 3 = 0 THEN 'private' ELSE 'public' END, '1', '[]', n, n
FROM numbers
"""


@pytest.mark.parametrize(
    ("reach", "seen"),
    [
        pytest.param({"readable": ("1", "2"), "administered": ("1", "2")}, {"1", "2"}, id="all"),
        pytest.param({"readable": ("1", "2")}, {"1", "2"}, id="beside groups"),
        pytest.param({"readable": ("1",), "where_created": ("2",)}, {"1"}, id="only created"),
    ],
)
async def test_postgresql_expects_as_many_private_repositories_as_an_owner_has(
    database: Database, reach: dict[str, Any], seen: set[str]
) -> None:
    among = {"readable": (), "where_created": (), "administered": ()} | reach
    within = Reach(user_id="1", created_with="app", **among)
    wanted, order = RepoFilter(type=RepoType.model), ListOrder()
    async with database.transaction() as conn:
        await conn.execute(MANY)
        await conn.execute("ANALYZE")
        explainer: Any = Explainer(conn, kind=database.kind)
        await lists_store.list_of_type(explainer, wanted, within, order=order, after=None, limit=5)
        found = await lists_store.list_of_type(
            conn, wanted, within, order=order, after=None, limit=200
        )

    assert {repo.owner_id for repo in found if repo.visibility != "public"} == seen
    if database.kind == "postgresql":
        # Each has 100. Where it expects a few it reads them all and sorts them.
        expected = re.findall(r"on repos r_[23] .*rows=(\d+)", explainer.plan)
        assert sum(int(rows) > 50 for rows in expected) == len(seen), explainer.plan


async def test_private_and_public_repositories_of_several_owners_are_in_one_order(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.post("/api/organizations", headers=ada, json={"name": "acme"})
    for number in range(6):
        owner = "acme" if number % 2 else "ada"
        body = {"name": f"model-{number}", "private": number % 3 == 0}
        body |= {"organization": "acme"} if owner == "acme" else {}
        await client.post("/api/repos/create", headers=ada, json=body)

    first = await client.get("/api/models?limit=4", headers=ada)
    rest = await client.get(first.links["next"]["url"], headers=ada)

    names = [each["id"].partition("/")[2] for each in [*first.json(), *rest.json()]]
    assert names == [f"model-{number}" for number in range(5, -1, -1)]
