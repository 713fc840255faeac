"""The viewer of a dataset and its SQL console, without script: rows, columns, queries, saved queries."""

import csv
import io
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.sql import child
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, sign_in
from repos.content import put
from repositories import a_repo
from web.parsed_pages import Element, parse

PAGE = "/datasets/ada/rows"
CONSOLE = f"{PAGE}/sql-console"
API = "/api/datasets/ada/rows/sql-console/embed"
ROWS = b"name,size\nwheel,3\ncog,5\n=cmd,7\n,9\n"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser, and her dataset."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    ada = await sign_in(database, "ada")
    repo_id = await a_repo(client, ada, "ada/rows", type="dataset")
    await put(database, repo_id, {"train.csv": ROWS, "test.csv": b"name,size\nlever,1\n"})
    return ada


async def send(client: httpx2.AsyncClient, action: str = CONSOLE, **fields: Any) -> httpx2.Response:
    token = form_token_of(await client.get(CONSOLE), CONSOLE)
    return await client.post(action, data={"form_token": token} | fields)


def rows_in(page: Element) -> list[list[str]]:
    [table] = page.all("table", class_="data")
    return [[cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")]


@pytest.mark.usefixtures("ada")
async def test_the_viewer_shows_the_first_rows_of_each_split(client: httpx2.AsyncClient) -> None:
    first = parse(await client.get(f"{PAGE}/viewer"))
    other = parse(await client.get(f"{PAGE}/viewer?view=default/test"))

    assert rows_in(first)[0] == ["wheel", "3"]
    assert rows_in(other) == [["lever", "1"]]
    assert [each.text for each in first.one("select", name="view").all("option")] == [
        "train",
        "test",
    ]
    tabs = [link.text for link in first.one("nav", class_="tabs").all("a")]
    assert {"Viewer", "SQL"} <= set(tabs)


@pytest.mark.usefixtures("ada")
async def test_columns_come_after_the_rows(client: httpx2.AsyncClient) -> None:
    page = parse(await client.get(f"{PAGE}/viewer"))
    part = await client.get(f"{PAGE}/viewer", headers={"Fragment": "statistics"})
    whole = parse(await client.get(f"{PAGE}/viewer?statistics=true"))

    assert "data-later" in page.one("section", id="statistics").attributes
    cards = parse(part).one("ul", class_="column-cards").all("li", class_="card")
    name, size = cards
    assert "25.0% null" in name.text
    assert "wheel" in name.one("ol").text
    assert "mean 6" in size.text
    assert size.one("svg", class_="histogram").one("path").attributes["d"].startswith("M0 44v")
    assert len(whole.one("ul", class_="column-cards").all("h3")) == 2


async def test_a_dataset_without_tables_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/words", type="dataset")
    await put(database, repo_id, {"README.md": b"# Words\n"})

    viewer = await client.get("/datasets/ada/words/viewer")
    console = await client.get("/datasets/ada/words/sql-console")
    assert "There are no rows to show." in viewer.text
    assert "No file here can be read as a table." in console.text


@pytest.mark.usefixtures("ada")
async def test_what_does_not_exist_is_not_found(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")
    for path in (
        f"{PAGE}/viewer?view=default/nothing",
        f"{PAGE}/viewer?revision=nothing",
        f"{CONSOLE}/nothing",
        "/ada/engine/viewer",
        "/ada/engine/sql-console",
    ):
        assert (await client.get(path)).status_code == 404, path


@pytest.mark.usefixtures("ada")
async def test_a_query_is_run_by_a_form(client: httpx2.AsyncClient) -> None:
    response = await send(client, sql="SELECT name FROM train WHERE size < 6 ORDER BY size")

    page = parse(response)
    assert response.status_code == 200
    assert rows_in(page) == [["wheel"], ["cog"]]
    assert page.one("textarea", name="sql").text.startswith("SELECT name FROM train")
    assert "2 rows in" in page.one("section", id="result").text


@pytest.mark.usefixtures("ada")
async def test_a_script_gets_the_result_alone(client: httpx2.AsyncClient) -> None:
    token = form_token_of(await client.get(CONSOLE), CONSOLE)
    response = await client.post(
        CONSOLE,
        data={"form_token": token, "sql": "SELECT 1 AS one"},
        headers={"Fragment": "result"},
    )

    page = parse(response)
    assert rows_in(page) == [["1"]]
    assert page.all("textarea") == []
    assert "1 row in" in page.one("section", id="result").attributes["data-status"]


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT nothing FROM train", "nothing"),
        ("COPY train TO 'x.csv'", "SELECT"),
        (" ", "sql must have 1 to 20,000 characters."),
    ],
)
async def test_what_a_query_has_wrong_is_said_beside_it(
    client: httpx2.AsyncClient, sql: str, problem: str
) -> None:
    response = await send(client, sql=sql)

    assert response.status_code == 400
    [notice] = notices_in(response)
    assert problem in notice


@pytest.mark.usefixtures("ada")
async def test_a_result_is_downloaded_as_a_file(client: httpx2.AsyncClient) -> None:
    sql = "SELECT name, size, [1, 2] AS list FROM train ORDER BY size"
    download = f"{CONSOLE}/download"
    as_csv = await send(client, download, sql=sql, format="csv")
    as_json = await send(client, download, sql=sql, format="json")
    as_arrow = await send(client, download, sql=sql, format="arrow")
    wrong = await send(client, download, sql=sql, format="xml")

    rows = list(csv.reader(io.StringIO(as_csv.text)))
    # No value is read as a formula.
    assert rows[:4] == [
        ["name", "size", "list"],
        ["wheel", "3", "[1,2]"],
        ["cog", "5", "[1,2]"],
        ["'=cmd", "7", "[1,2]"],
    ]
    assert as_json.json()[0] == {"name": "wheel", "size": 3, "list": [1, 2]}
    assert as_arrow.status_code == 200, as_arrow.text
    assert as_arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert 'filename="result.csv"' in as_csv.headers["content-disposition"]
    assert wrong.status_code == 400


async def test_a_query_is_saved_changed_and_deleted_by_forms(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    saved = await send(
        client, f"{CONSOLE}/save", sql="SELECT 1 FROM train", title="One", private="yes"
    )
    path = saved.headers["location"]
    [query] = (await client.get(API, headers=ada)).json()
    assert (path, query["private"]) == (f"{CONSOLE}/{query['slug']}", True)
    assert [view["key"] for view in query["views"]] == ["default/train", "default/test"]
    page = await client.get(path)
    assert "SELECT 1 FROM train" in page.text
    assert f"http://hub.test{path}" in page.text

    await send(client, f"{path}/update", sql="SELECT 2 FROM train", title="Two")
    [query] = (await client.get(API, headers=ada)).json()
    assert (query["title"], query["sql"], query["private"]) == ("Two", "SELECT 2 FROM train", False)
    ran = await send(client, sql="SELECT size FROM test", saved=query["slug"])
    assert rows_in(parse(ran)) == [["1"]]
    await send(client, f"{path}/delete")
    assert (await client.get(API, headers=ada)).json() == []


async def test_a_query_without_a_title_keeps_what_was_typed(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await send(client, f"{CONSOLE}/save", sql="SELECT 1 FROM train", title="")

    assert response.status_code == 400
    assert "title" in notices_in(response)[0]
    assert "SELECT 1 FROM train" in parse(response).one("textarea", name="sql").text
    assert (await client.get(API, headers=ada)).json() == []


async def test_visitors_see_the_console_and_are_asked_to_sign_in(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await send(client, f"{CONSOLE}/save", sql="SELECT 1 FROM train", title="Public one")
    client.cookies.clear()

    page = await client.get(CONSOLE)
    assert "Sign in to run it" in page.text
    assert "Public one" in page.text
    assert "data-run" not in page.text
    assert (await client.get(f"{PAGE}/viewer")).status_code == 200
    sent = await client.post(CONSOLE, data={"sql": "SELECT 1"})
    assert sent.headers["location"].startswith("/login")


async def test_the_content_of_a_gated_dataset_is_shown_to_those_with_access(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    gate = {"gated": "manual"}
    await client.put("/api/datasets/ada/rows/settings", headers=ada, json=gate)
    client.cookies.clear()
    await a_person(database, "bob")
    await log_in(client, "bob")

    for path in (f"{PAGE}/viewer", CONSOLE):
        page = await client.get(path)
        assert "The content of this repository is gated" in page.text
        assert "wheel" not in page.text
    assert (await client.get(CONSOLE.replace("rows", "nothing"))).status_code == 404


async def test_a_private_dataset_is_not_there_for_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.put("/api/datasets/ada/rows/settings", headers=ada, json={"private": True})
    assert (await client.get(f"{PAGE}/viewer")).status_code == 200
    client.cookies.clear()

    for path in (f"{PAGE}/viewer", CONSOLE):
        assert (await client.get(path)).status_code == 404


@pytest.mark.usefixtures("ada")
async def test_without_the_extra_the_pages_say_so_and_the_tabs_are_gone(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "find_spec", lambda _: None)
    page = await client.get(f"{PAGE}/viewer")
    ran = await send(client, sql="SELECT 1")

    assert "pip install" in notices_in(page)[0]
    assert ran.status_code == 501
    assert "/viewer" not in [link.attributes["href"] for link in parse(page).all("a")]
