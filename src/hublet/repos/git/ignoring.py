"""Which files a .gitignore keeps out."""

from dataclasses import dataclass

from hublet.repos.git.patterns import Pattern


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Pattern
    keeps_out: bool
    only_folders: bool


class IgnoreRules:
    """The rules of one .gitignore at the root of a repository."""

    def __init__(self, text: str) -> None:
        rules = (_rule(line) for line in text.splitlines())
        # The last rule that matches decides.
        self._rules = [rule for rule in rules if rule is not None][::-1]

    def ignores(self, path: str) -> bool:
        # What lies in a folder that is kept out cannot be let in again.
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self._decides(folder, is_folder=True) for folder in folders) or self._decides(
            path, is_folder=False
        )

    def _decides(self, path: str, *, is_folder: bool) -> bool:
        for rule in self._rules:
            if (is_folder or not rule.only_folders) and rule.pattern.matches(path):
                return rule.keeps_out
        return False


def _rule(line: str) -> _Rule | None:
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    return _Rule(Pattern(text), keeps_out=not negated, only_folders=only_folders)


def _without_trailing_blanks(line: str) -> str:
    """Cut blanks at the end, except one that a backslash keeps."""
    text = line.rstrip(" \t\r")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(text) < len(line) else text
