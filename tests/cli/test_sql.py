"""`hublet sql` against a running hub: rows as a table, CSV, JSON and Arrow, and what goes wrong."""

import itertools
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from processes import Server
from repos.commits import file, header, ndjson

pytestmark = pytest.mark.full

_numbers = itertools.count()


@pytest.fixture
def words(server: Server) -> str:
    name = f"words{next(_numbers)}"
    with server.client(server.token) as client:
        made = client.post("/api/repos/create", json={"name": name, "type": "dataset"}).json()
        lines = ndjson(header(), file("train.csv", "word,size\nwheel,3\ncog,\n"))
        kind = {"Content-Type": "application/x-ndjson"}
        path = f"/api/datasets/{made['name']}/commit/main"
        sent = client.post(path, content=lines, headers=kind)
    assert sent.status_code == 200, sent.text
    return str(made["name"])


def test_rows_are_printed_in_every_format(ask: Hublet, words: str, tmp_path: Path) -> None:
    query = "SELECT word, size FROM train ORDER BY word"
    as_table = ask("sql", words, query)
    as_csv = ask("sql", words, query, "--format", "csv")
    as_json = ask("sql", words, "-", "--format", "json", stdin=query)
    path = tmp_path / "rows.arrow"
    as_arrow = ask("sql", words, query, "--format", "arrow", "--output", str(path))

    assert as_table.out.split() == ["word", "size", "cog", "-", "wheel", "3"]
    assert as_csv.out == "word,size\ncog,\nwheel,3\n"
    assert as_json.json == [{"word": "cog", "size": None}, {"word": "wheel", "size": 3}]
    assert (as_arrow.code, as_arrow.err) == (0, f"Wrote {path}.\n")
    assert path.read_bytes()[:4] == b"\xff\xff\xff\xff"


def test_two_columns_of_one_name_and_a_limit(ask: Hublet, words: str) -> None:
    shown = ask("sql", words, "SELECT word, word FROM train ORDER BY word", "--limit", "1")

    assert shown.out.split() == ["word:0", "word:1", "cog", "cog"]
    assert "There are more rows" in shown.err


def test_what_is_wrong_is_told(ask: Hublet, words: str) -> None:
    wrong = ask("sql", words, "SELECT nothing FROM train")
    absent = ask("sql", "ada/nothing", "SELECT 1")
    unnamed = ask("sql", "words", "SELECT 1")
    view = ask("sql", words, "SELECT 1", "--view", "train")

    assert wrong.code == absent.code == unnamed.code == view.code == 1
    assert "nothing" in wrong.err
    assert "is no dataset: it has the form owner/name" in unnamed.err
    assert "is no view: it has the form" in view.err
