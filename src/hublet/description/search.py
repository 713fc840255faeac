"""Search in the description: the operations that have all words of a query, the best first."""

from collections.abc import Iterable, Iterator

from hublet.core.dataclasses import dataclass
from hublet.description.records import Operation, Outline, Section
from hublet.search.words import split

# How much more a word counts where the reader looks first.
_IN_TITLE, _IN_TAG, _IN_TEXT = 4, 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOperation:
    section: Section
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    found: FoundOperation
    title: frozenset[str]
    tag: frozenset[str]
    text: frozenset[str]

    def weight_of(self, word: str) -> int:
        """Return how much a word, or the beginning of one, counts here; 0 when it is not here."""
        places = ((self.title, _IN_TITLE), (self.tag, _IN_TAG), (self.text, _IN_TEXT))
        return next((weight for words, weight in places if _begins_any(words, word)), 0)


def _begins_any(words: Iterable[str], beginning: str) -> bool:
    return any(word.startswith(beginning) for word in words)


class DescriptionSearch:
    """The words of every operation, read once for each app."""

    def __init__(self, outline: Outline) -> None:
        self._entries = tuple(_entries_of(outline))

    def find(self, query: str, *, limit: int) -> list[FoundOperation]:
        words = split(query)
        ranked: list[tuple[int, FoundOperation]] = []
        for entry in self._entries:
            weights = [entry.weight_of(word) for word in words]
            if weights and all(weights):
                ranked.append((-sum(weights), entry.found))
        ranked.sort(key=lambda each: each[0])
        return [found for _, found in ranked[:limit]]


def _entries_of(outline: Outline) -> Iterator[_Entry]:
    for section in outline.sections:
        for operation in section.operations:
            named = f"{operation.method} {operation.path} {operation.summary}"
            fields = " ".join(
                f"{parameter.name} {parameter.text}" for parameter in operation.parameters
            )
            yield _Entry(
                found=FoundOperation(section=section, operation=operation),
                title=frozenset(split(named)),
                tag=frozenset(split(f"{section.tag} {section.text}")),
                text=frozenset(split(f"{operation.text} {operation.access} {fields}")),
            )
