"""The page of a repository: its card, its tags, how to use it, and who may see it."""

import json
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import cards
from hublet.repos.records import RepoType
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repos.content import pointer, put
from repositories import a_push, a_repo
from web.parsed_pages import HTML, Element, parse, submit

README = """---
library_name: transformers
pipeline_tag: text-generation
language: [en]
license: apache-2.0
datasets: [ada/numbers]
---
# Engine

It *counts*. ![A wheel](wheel.png)
"""


async def a_model(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    readme: str | None = README,
    **body: object,
) -> str:
    """Return the id of ada/engine with a card, or without."""
    repo_id = await a_repo(client, ada, "ada/engine", **body)
    card = cards.parse_card((readme or "").encode(), RepoType.model)
    files = {"config.json": b"{}", "wheel.png": b"png", "weights.bin": b"12345"}
    if readme is not None:
        files["README.md"] = readme.encode()
    await a_push(database, repo_id, files, card=card.data, tags=card.tags)
    return repo_id


async def open_page(client: httpx2.AsyncClient, path: str = "/ada/engine") -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


def facts_of(page: Element) -> dict[str, str]:
    facts = page.one("dl", class_="facts")
    return {
        name.text: value.text for name, value in zip(facts.all("dt"), facts.all("dd"), strict=True)
    }


async def test_a_card_shows_the_readme_and_what_the_hub_knows(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)

    page = await open_page(client)

    article = page.one("article")
    assert (article.one("em").text, article.all("h1")[0].text) == ("counts", "Engine")
    assert article.one("img").attributes["src"] == "/ada/engine/resolve/main/wheel.png"
    facts = facts_of(page)
    assert facts["Size"] == f"{10 + len(README)} B in 4 files"
    [last] = [
        each for each in page.all("a", class_="mono") if "/commit/" in each.attributes["href"]
    ]
    assert facts["Last commit"] == last.attributes["href"].rpartition("/")[2][:7]


async def test_tags_lead_to_the_lists_with_the_filters_of_the_api(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)

    page = await open_page(client)

    assert [(each.text, each.attributes["href"]) for each in page.all("a", class_="chip")] == [
        ("Transformers", "/models?filter=transformers"),
        ("Text Generation", "/models?pipeline_tag=text-generation"),
        ("English", "/models?filter=en"),
        ("ada/numbers", "/models?filter=dataset%3Aada%2Fnumbers"),
        ("apache-2.0", "/models?filter=license%3Aapache-2.0"),
    ]


async def test_many_tags_are_folded_away(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    tags = ", ".join(f"tag-{number}" for number in range(30))
    await a_model(client, database, ada, readme=f"---\ntags: [{tags}]\n---\n# Many\n")

    page = await open_page(client)

    folded = page.one("details", class_="more-tags")
    assert folded.one("summary").text == "16 more"
    assert len(page.all("a", class_="chip")) == 30


async def test_snippets_name_this_hub(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)

    page = await open_page(client)

    ways = {
        each.one("summary").text: each.one("code").text
        for each in page.all("details", class_="way")
    }
    assert ways == {
        "transformers": 'from os import environ environ["HF_ENDPOINT"] = "http://hub.test" '
        'from transformers import pipeline pipe = pipeline( "text-generation", model="ada/engine", )',
        "hf download": "export HF_ENDPOINT=http://hub.test hf download ada/engine",
        "git clone": "git lfs install git clone http://hub.test/ada/engine",
    }


async def test_a_new_repository_says_how_to_fill_it_to_who_may(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    stranger = await open_page(client)
    await a_person(database, "bob")
    await log_in(client, "bob")
    other = await open_page(client)

    assert stranger.one("div", class_="empty").text == other.one("div", class_="empty").text
    assert stranger.one("div", class_="empty").text == "Nothing here yet."


async def test_the_owner_of_an_empty_repository_sees_three_ways(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_repo(client, await sign_in(database, "ada"), "ada/words", type="dataset")
    await log_in(client)

    page = await open_page(client, "/datasets/ada/words")

    empty = page.one("div", class_="empty")
    assert [each.text for each in empty.all("h3")] == ["hf upload", "git push", "Python"]
    assert "hf upload ada/words . --repo-type dataset" in empty.text
    assert "git clone http://hub.test/datasets/ada/words" in empty.text


async def test_without_a_readme_the_page_asks_its_owner_for_one(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_model(client, database, await sign_in(database, "ada"), readme=None)

    stranger = (await open_page(client)).one("div", class_="empty").text
    await log_in(client)
    owner = (await open_page(client)).one("div", class_="empty").text

    assert owner.startswith("No README.md.Add one: it is what people see first.")
    assert "hf upload ada/engine README.md" in owner
    assert stranger.startswith("No README.md.")
    assert "hf upload" not in stranger


async def test_a_readme_of_metadata_alone_is_said_to_be_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada, readme="---\nlicense: mit\n---\n")

    page = await open_page(client)

    assert page.one("div", class_="empty").one("h2").text == "The README.md has no text."


@pytest.mark.parametrize("kind", ["datasets", "spaces", "kernels"])
async def test_every_kind_with_git_has_its_page(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/thing", type=kind[:-1])

    page = await open_page(client, f"/{kind}/ada/thing")

    assert page.one("h1", class_="crumbs").text == "ada/thing"
    assert page.all("a", href=f"/{kind}/ada/thing/tree/main")


async def test_open_threads_stand_beside_the_card(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    for title in ("Pad on the left", "Does it run?"):
        body = {"title": title, "description": "Please."}
        await client.post("/api/models/ada/engine/discussions", headers=ada, json=body)
    closed = {"status": "closed"}
    await client.post("/api/models/ada/engine/discussions/1/status", headers=ada, json=closed)

    page = await open_page(client)

    [item] = page.one("ul", class_="mini").all("li")
    assert (item.text, item.one("a").attributes["href"]) == (
        "Does it run?#2",
        "/ada/engine/discussions/2",
    )


async def test_running_jobs_are_shown_only_to_who_may_see_them(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    ada = await sign_in(database, "ada")
    await a_model(client, database, ada)
    volume = {"type": "model", "source": "ada/engine", "mountPath": "/m", "readOnly": True}
    started = await client.post(
        "/api/jobs/ada",
        headers=ada,
        json={
            "dockerImage": "local",
            "command": ["true"],
            "flavor": "cpu-basic",
            "environment": {},
            "labels": {"name": "nightly"},
            "volumes": [volume],
        },
    )
    assert started.status_code == 200, started.text

    stranger = await open_page(client)
    await log_in(client)
    owner = await open_page(client)

    assert stranger.all("ul", class_="mini") == []
    [item] = owner.one("ul", class_="mini").all("li")
    assert item.text == "nightlyscheduling"
    assert item.one("a").attributes["href"] == f"/jobs/ada/{started.json()['id']}"


async def test_a_reader_likes_and_watches_and_stops_it_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    await a_person(database, "bob")
    await log_in(client, "bob")

    seen = []
    for verb in ("like", "watch", "unlike", "unwatch"):
        page = await open_page(client)
        seen.append(page.one("div", id="acts").text)
        response = await submit(client, page, f"/ada/engine/{verb}")
        assert (response.status_code, response.headers["location"]) == (303, "/ada/engine")

    assert seen == [
        "Like 0 Watch Collect",
        "Liked 1 Watch Collect",
        "Liked 1 Watching Collect",
        "Like 0 Watching Collect",
    ]
    assert (await open_page(client)).one("div", id="acts").text == "Like 0 Watch Collect"


async def test_a_script_gets_only_the_buttons_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    await a_person(database, "bob")
    await log_in(client, "bob")
    form = (await open_page(client)).one("form", action="/ada/engine/like")
    token = form.one("input").attributes["value"]

    response = await client.post(
        "/ada/engine/like", data={"form_token": token}, headers={"Fragment": "acts"}
    )

    assert "Fragment" in response.headers["vary"]
    [acts] = parse(response).children
    assert (acts.attributes["id"], acts.text) == ("acts", "Liked 1 Watch Collect")


@pytest.mark.parametrize("verb", ["like", "unlike", "watch", "unwatch"])
async def test_a_button_needs_the_token_of_its_form_and_a_session(
    client: httpx2.AsyncClient, database: Database, ada: Headers, verb: str
) -> None:
    await a_model(client, database, ada)

    signed_out = await client.post(f"/ada/engine/{verb}", headers=HTML)
    await a_person(database, "bob")
    await log_in(client, "bob")
    forged = await client.post(f"/ada/engine/{verb}", headers=HTML, data={"form_token": "00"})

    assert signed_out.headers["location"].startswith("/login?")
    assert forged.status_code == 403


async def test_who_is_not_signed_in_finds_the_way_to_it_and_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)

    page = await open_page(client)

    links = page.one("div", id="acts").all("a")
    assert {each.attributes["href"] for each in links} == {
        "/login?next=/ada/engine",
        "/ada/engine/collections",
    }
    response = await client.get("/ada/engine/collections")
    assert response.headers["location"] == "/login?next=/ada/engine/collections"


async def test_a_private_page_looks_like_one_that_is_not_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada, private=True)
    await a_person(database, "bob")

    for name in (None, "bob"):
        if name is not None:
            await log_in(client, name)
        private = await client.get("/ada/engine", headers=HTML)
        absent = await client.get("/ada/ghosts", headers=HTML)
        assert (private.status_code, absent.status_code) == (404, 404)
        assert tokenless(private) == tokenless(absent).replace(b"ghosts", b"engine")
        assert {*private.headers} == {*absent.headers}
        assert (await client.get("/ada/engine/resolve/main/wheel.png")).status_code in {401, 404}


def tokenless(page: httpx2.Response) -> bytes:
    """Return the page without the tokens of its forms, which differ each time."""
    start, *rest = page.content.split(b'name="form_token" value="')
    return start + b"".join(each.partition(b'"')[2] for each in rest)


async def test_a_reader_of_a_private_repository_sees_it_with_its_pictures(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_model(client, database, await sign_in(database, "ada"), private=True)
    await log_in(client)

    page = await open_page(client)
    picture = await client.get(page.one("article").one("img").attributes["src"])

    assert [each.text for each in page.all("span", class_="badge")] == ["Private"]
    assert (picture.status_code, picture.content) == (200, b"png")


async def test_a_moved_repository_is_followed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    move = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=move)

    response = await client.get("/ada/engine?a=b", headers=HTML)

    assert (response.status_code, response.headers["location"]) == (307, "/ada/motor?a=b")


async def test_a_page_that_did_not_change_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    await a_person(database, "bob")
    await log_in(client, "bob")
    clock.move(timedelta(hours=2))
    first = await client.get("/ada/engine", headers=HTML)

    again = await client.get("/ada/engine", headers=HTML | {"If-None-Match": first.headers["etag"]})
    await client.post("/api/models/ada/engine/like", headers=ada)
    liked = await client.get("/ada/engine", headers=HTML | {"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert liked.status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"


async def test_a_new_commit_shows_its_readme_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_model(client, database, ada)
    await open_page(client)

    await a_push(database, repo_id, {"README.md": b"# Renewed"})

    assert (await open_page(client)).one("article").text.startswith("Renewed")


@pytest.mark.parametrize("path", ["/settings/ghost", "/datasets/ada", "/v2/x/y"])
async def test_words_of_the_hub_are_no_owners(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(path)

    assert response.status_code in {401, 404, 501}
    assert response.headers["content-type"] == "application/json"


async def test_downloads_of_thirty_days_are_drawn(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    repo_id = await a_model(client, database, ada)
    quiet = await open_page(client)
    for days, people in ((40, "a"), (1, "bc"), (0, "defg")):
        for person in people:
            app.state.downloads.count(repo_id, who=person)
        await app.state.downloads.flush()
        clock.move(timedelta(days=days))

    page = await open_page(client)

    assert quiet.all("svg", class_="spark") == []
    assert page.one("div", class_="big").text == "6"
    assert facts_of(page)["Downloads in all"] == "7"
    assert page.one("svg", class_="spark").all("path")[1].attributes["d"].endswith("22L300 2")


async def test_to_look_at_a_picture_is_no_download(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    await a_model(client, database, ada)
    for headers in ({"Sec-Fetch-Dest": "image"}, {}):
        await client.get("/ada/engine/resolve/main/wheel.png", headers=headers)

    await app.state.downloads.flush()

    assert (await client.get("/api/models/ada/engine")).json()["downloads"] == 1


def _weights(**shapes: tuple[str, list[int]]) -> bytes:
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
        for name, (dtype, shape) in shapes.items()
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


_SMALL = _weights(a=("BF16", [1000, 1200]), b=("F32", [500]))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"model.safetensors": _SMALL}, ["1.2 M", "BF16 1.2 M", "F32 500"], id="one file"
        ),
        pytest.param(
            {f"model-0000{n}-of-00002.safetensors": _SMALL for n in (1, 2)},
            ["2.4 M", "BF16 2.4 M", "F32 1 k"],
            id="shards",
        ),
        pytest.param(
            {
                "model.safetensors": _SMALL,
                "other.safetensors": _SMALL,
                "fp16/model.safetensors": _SMALL,
            },
            ["1.2 M", "BF16 1.2 M", "F32 500"],
            id="one beside others",
        ),
        pytest.param(
            {"lora.safetensors": _SMALL}, ["1.2 M", "BF16 1.2 M", "F32 500"], id="the only one"
        ),
        pytest.param({"a.safetensors": _SMALL, "b.safetensors": _SMALL}, [], id="which of them?"),
        pytest.param({"model.safetensors": b"xx"}, [], id="damaged"),
        pytest.param({"model.safetensors": pointer(b"elsewhere")}, [], id="not uploaded"),
    ],
)
async def test_the_card_counts_the_parameters_of_the_weights(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    files: dict[str, bytes],
    expected: list[str],
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, files)

    # The second time from the cache.
    for _ in range(2):
        page = parse(await client.get("/ada/engine", headers=HTML))
        found = page.all("section", class_="weights")
        shown = [
            line
            for each in found
            for line in (
                each.one("div", class_="big").text.removesuffix(" parameters"),
                *(
                    f"{name.text} {count.text}"
                    for name, count in zip(each.all("dt"), each.all("dd"), strict=True)
                ),
            )
        ]
        assert shown == expected


async def test_the_weights_of_a_gated_model_are_for_who_passed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, {"model.safetensors": _SMALL})
    settings = "/api/models/ada/engine/settings"
    assert (await client.put(settings, headers=ada, json={"gated": "auto"})).status_code == 200

    page = parse(await client.get("/ada/engine", headers=HTML))

    assert page.all("section", class_="weights") == []
