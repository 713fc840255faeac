"""The commands of collections against a running hub."""

import itertools

import pytest

from cli.hublet_command import Hublet
from processes import Server

pytestmark = pytest.mark.full

_numbers = itertools.count()


@pytest.fixture
def engine(server: Server) -> str:
    name = f"collected{next(_numbers)}"
    with server.client(server.token) as client:
        made = client.post("/api/repos/create", json={"name": name, "type": "model"})
    assert made.status_code == 200, made.text
    return str(made.json()["name"])


def test_a_collection_from_its_creation_to_its_end(ask: Hublet, engine: str) -> None:
    title = f"Wheels {engine}"
    created = ask("collections", "create", title, "--description", "All that turns")
    slug = created.out.strip()
    added = ask("collections", "add", slug, "model", engine, "--note", "First")
    shown = ask("collections", "info", slug)
    listed = ask("collections", "list", "--item", f"models/{engine}", "--quiet")
    changed = ask("collections", "update", slug, "--theme", "pink", "--private", "--json")
    removed = ask("collections", "remove", slug, engine)
    again = ask("collections", "remove", slug, engine)
    deleted = ask("collections", "delete", slug, "--yes")
    gone = ask("collections", "info", slug)

    assert created.err == f"Created the collection {title}.\n"
    assert added.err == f"{title} holds {engine}.\n"
    assert shown.out.split() == ["type", "id", "note", "model", engine, "First"]
    assert listed.out.strip() == slug
    assert '"theme": "pink"' in changed.out
    assert removed.err == f"{title} holds {engine} no more.\n"
    assert (again.code, again.err) == (1, f"hublet: {title} holds no {engine}.\n")
    assert deleted.err == f"Deleted the collection {slug}.\n"
    assert gone.code == 1


def test_what_makes_no_sense_is_refused(ask: Hublet) -> None:
    assert "is no slug" in ask("collections", "info", "wheels").err
    assert "Say what to change" in ask("collections", "update", "ada/wheels").err
