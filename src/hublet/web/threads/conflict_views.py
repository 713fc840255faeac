"""View of the conflict editor: what both sides say, what was typed, and what a form asks for."""

from collections.abc import Mapping, Sequence

from hublet.community.discussions.comparison import Sides
from hublet.community.discussions.conflicts import (
    MAX_FILES,
    ConflictingFile,
    ConflictSide,
    Solution,
)
from hublet.core.dataclasses import dataclass
from hublet.web.threads.views import ThreadView

# What a form sends of each file: where it is taken from, and the text that was edited.
TAKE, TEXT = "take:", "text:"
_EDITED = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionForm:
    """What somebody chose and typed, by path."""

    sides: Sides
    taken: Mapping[str, str]
    texts: Mapping[str, str]

    @property
    def solution(self) -> Solution:
        sides = {str(side): side for side in ConflictSide}
        return {
            path: sides.get(chosen, self.texts.get(path, ""))
            for path, chosen in self.taken.items()
            if chosen in sides or path in self.texts
        }


def read_solution(form: Mapping[str, str]) -> SolutionForm:
    def fields(start: str) -> dict[str, str]:
        return {
            name.removeprefix(start): value.replace("\r\n", "\n")
            for name, value in form.items()
            if name.startswith(start)
        }

    sides = Sides(base=form.get("base", ""), head=form.get("head", ""))
    return SolutionForm(sides=sides, taken=fields(TAKE), texts=fields(TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSolve:
    """A file in the editor."""

    file: ConflictingFile
    # Where it is taken from: text, base or head.
    chosen: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsView:
    """What `threads/conflicts.html` takes as `conflicts`."""

    thread: ThreadView
    # None when the pull request is not open any more.
    sides: Sides | None
    files: Sequence[ConflictingFile] = ()
    typed: SolutionForm | None = None
    problem: str | None = None

    @property
    def has_moved(self) -> bool:
        """Whether what was typed was meant for other commits than those of now."""
        return self.typed is not None and self.typed.sides != self.sides

    @property
    def is_solvable(self) -> bool:
        return len(self.files) <= MAX_FILES and all(each.is_solvable for each in self.files)

    @property
    def to_solve(self) -> list[FileToSolve]:
        return [self._file(each) for each in self.files]

    @property
    def lost_texts(self) -> Mapping[str, str]:
        """What was typed and stands in no field of the page."""
        return self.typed.texts if self.typed is not None and self.has_moved else {}

    def _file(self, file: ConflictingFile) -> FileToSolve:
        usual = _EDITED if file.merged is not None else str(ConflictSide.head)
        typed = None if self.has_moved else self.typed
        text = file.merged or ""
        if typed is None:
            return FileToSolve(file=file, chosen=usual, text=text)
        return FileToSolve(
            file=file,
            chosen=typed.taken.get(file.path, usual),
            text=typed.texts.get(file.path, text),
        )
