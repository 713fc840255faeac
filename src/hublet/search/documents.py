"""Documents of the index: which words of a repository, account, thread or collection are found, by whom."""

from collections.abc import Iterable, Iterator
from typing import Any

from hublet.accounts.records import Organization, User
from hublet.community.collections.records import CollectionRecord
from hublet.community.threads.records import Thread
from hublet.repos.records import Repo, Visibility
from hublet.search import words
from hublet.search.records import HOTTEST, RANK_STEP, SearchDocument, SearchKind

MOST_LABELS = 200
# Fields of a card that its tags do not repeat.
_CARD_FIELDS = ("title", "pretty_name", "model_name", "short_description", "license_name", "sdk")


def of_repo(
    repo: Repo, *, text: tuple[str, ...] = (), text_version: str | None = None
) -> SearchDocument:
    owner, name = words.split(repo.owner_name), words.split(repo.name)
    return SearchDocument(
        kind=SearchKind(repo.type),
        target_id=repo.id,
        scope=_scope_of(repo),
        heat=heat_of(repo.likes),
        whole_names=_whole(name, [*owner, *name]),
        names=_once([*owner, *name]),
        labels=_once(_labels(repo))[:MOST_LABELS],
        text=text,
        text_version=text_version,
    )


def _scope_of(repo: Repo) -> str:
    return scope_in(SearchKind(repo.type).letter, repo)


def scope_in(letter: str, repo: Repo) -> str:
    """Return the scope of what those see who see a repository."""
    if repo.visibility is Visibility.public:
        return letter
    if repo.resource_group_id is not None:
        return group_scope(letter, repo.resource_group_id)
    return owner_scope(letter, repo.owner_id)


def owner_scope(letter: str, owner_id: str) -> str:
    return f"{letter}o{owner_id}"


def group_scope(letter: str, group_id: str) -> str:
    return f"{letter}g{group_id}"


def _labels(repo: Repo) -> Iterator[str]:
    card: dict[str, Any] = repo.card or {}
    fields = [card.get(name) for name in _CARD_FIELDS]
    for value in [*fields, *repo.tags]:
        if isinstance(value, str):
            yield from words.split(value[: words.LONGEST_QUERY])


def of_account(account: User | Organization, *, followers: int) -> SearchDocument:
    kind = SearchKind.user if isinstance(account, User) else SearchKind.organization
    name, fullname = words.split(account.name), words.split(account.fullname)
    return SearchDocument(
        kind=kind,
        target_id=account.id,
        scope=kind.letter,
        heat=heat_of(followers),
        whole_names=_whole(name, fullname),
        names=_once([*name, *fullname]),
    )


def of_thread(thread: Thread) -> SearchDocument:
    """Return the document of a paper, post or blog."""
    kind = SearchKind(thread.kind)
    title, key = words.split(thread.title), words.split(thread.paper_id or "")
    authors = (thread.details or {}).get("authors", ())
    return SearchDocument(
        kind=kind,
        target_id=thread.id,
        scope=kind.letter,
        whole_names=_whole(title, key),
        names=_once([*title, *key]),
        labels=_once(word for author in authors for word in words.split(str(author)))[:MOST_LABELS],
        text=words.of_markdown(thread.body or ""),
    )


def of_collection(collection: CollectionRecord) -> SearchDocument:
    kind = SearchKind.collection
    owner, title = words.split(collection.owner.name), words.split(collection.title)
    return SearchDocument(
        kind=kind,
        target_id=collection.id,
        scope=_collection_scope(collection),
        heat=heat_of(collection.upvotes),
        whole_names=_whole(title, [*owner, *title]),
        names=_once([*owner, *title]),
        text=words.of_markdown(collection.description),
    )


def _collection_scope(collection: CollectionRecord) -> str:
    letter = SearchKind.collection.letter
    if not collection.is_private:
        return letter
    if collection.resource_group_id is not None:
        return group_scope(letter, collection.resource_group_id)
    return owner_scope(letter, collection.owner_id)


def heat_of(likes: int) -> int:
    """Return how many binary digits a number has: it changes when likes double, not with each."""
    return min(max(likes, 0).bit_length(), HOTTEST)


def _whole(*names: list[str]) -> tuple[str, ...]:
    return _once(words.joined(name) for name in names if name)


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def ranks_of(document: SearchDocument) -> dict[str, int]:
    """Return what stands in the index for a document: words and prefixes, each with its rank.

    A prefix that is a word of the document too has one entry, so that no query finds it twice.
    """
    lines: dict[str, int] = {}
    for line, found in enumerate(document.lines):
        for word in found:
            lines.setdefault(word, line)
    for word in (*document.whole_names, *document.names):
        for prefix in words.prefixes(word):
            key = prefix if prefix in lines else f"{prefix}*"
            lines[key] = min(lines.get(key, 1), 1)
    return {word: line * RANK_STEP - document.heat for word, line in lines.items()}


def correctable_words(document: SearchDocument) -> set[str]:
    return {word for word in (*document.names, *document.labels) if words.is_correctable(word)}


def write_lines(*lines: Iterable[str]) -> str:
    """Return words as they are stored, each between blanks."""
    return "\n".join(f" {' '.join(line)} " for line in lines)


def read_lines(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in text.split("\n"))
