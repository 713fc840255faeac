"""Command for search: names and tags of everything, or whole texts."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hublet.cli.output import Table
from hublet.cli.remote_command import add_remote_command, fail

if TYPE_CHECKING:
    from hublet.client import Hub

# The values of `search.schemas`, written out: importing those would make help slower.
_OF_NAMES = ("model", "dataset", "space", "kernel", "bucket", "collection", "user", "org", "paper")
_OF_TEXTS = ("model", "dataset", "space", "kernel", "discussion", "paper")
# What names a hit, where it is not its id.
_NAMES = {"user": "user", "org": "name", "collection": "slug"}
_MOST_NAMES = 20
_TYPE_HELP = (
    f"Only these, can be repeated: {', '.join(_OF_NAMES)}; of texts: {', '.join(_OF_TEXTS)}."
)
_MOST_TEXTS = 1000


def register(app: typer.Typer) -> None:
    add_remote_command(app, "search", search, example="hublet search steam engine --type model")


def search(
    hub: "Hub",
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="All of them are found.")],
    *,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help=_TYPE_HELP, show_default=False),
    ] = None,
    full_text: Annotated[
        bool,
        typer.Option("--full-text", help="In whole cards, discussions and papers, with the place."),
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only repositories of this user or organization."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="COUNT", min=1, max=_MOST_TEXTS,
            help=f"At most so many: of each type {_MOST_NAMES} at most, of texts {_MOST_TEXTS}.",
            show_default=False,
        ),
    ] = None,
) -> Table:  # fmt: skip
    """Find what you may see by words, the best first."""
    kinds = _check_types(type_ or [], full_text=full_text)
    if full_text:
        if namespace is not None:
            fail("--namespace is for names: leave it out, or --full-text.")
        return _texts(hub, " ".join(words), kinds, limit or _MOST_NAMES)
    return _names(hub, " ".join(words), kinds, namespace, limit or 10)


def _check_types(kinds: list[str], *, full_text: bool) -> list[str]:
    known = _OF_TEXTS if full_text else _OF_NAMES
    for kind in kinds:
        if kind not in known:
            advice = " with --full-text" if full_text else ""
            fail(f"--type {kind} is not possible{advice}: it is one of {', '.join(known)}.")
    return kinds


def _names(hub: "Hub", words: str, kinds: list[str], namespace: str | None, limit: int) -> Table:
    if limit > _MOST_NAMES:
        fail(f"--limit is at most {_MOST_NAMES} of each type.")
    query = {"q": words, "type": kinds or None, "namespace": namespace, "limit": limit}
    found = hub.get("/api/quicksearch", query)
    return Table(
        rows=list(_rows(found)),
        columns={"type": "type", "name": "name"},
        name="name",
        empty="Nothing that you may see has these words.",
        data=[found],
    )


def _rows(found: dict[str, Any]) -> Iterator[dict[str, object]]:
    for kind in _OF_NAMES:
        for hit in found[f"{kind}s"]:
            yield {"type": kind, "name": hit[_NAMES.get(kind, "id")]}


def _texts(hub: "Hub", words: str, kinds: list[str], limit: int) -> Table:
    query = {"q": words, "type": kinds or None, "limit": min(limit, 50)}
    found = list(islice(hub.pages("/api/search/full-text", query), limit))
    return Table(
        rows=[
            {
                "type": each["type"],
                "title": each["title"],
                "text": "".join(part["text"] for part in each["snippet"])[:100],
                "url": each["url"],
            }
            for each in found
        ],
        columns={"type": "type", "title": "title", "text": "text"},
        name="url",
        empty="No text that you may see has all of these words.",
        data=found,
    )
