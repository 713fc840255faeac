"""Addresses of a repository's files, in one revision."""

from urllib.parse import quote

from hublet.core.dataclasses import dataclass
from hublet.web.rendering.links import revision_segment


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLinks:
    """Addresses of pages and downloads in a revision of a repository."""

    # The address of the repository's page.
    repo: str
    # As people call it: a branch, a tag, a commit.
    revision: str

    def tree(self, path: str = "") -> str:
        return self._address("tree", path)

    def blob(self, path: str) -> str:
        return self._address("blob", path)

    def blame(self, path: str) -> str:
        return self._address("blame", path)

    def edit(self, path: str) -> str:
        return self._address("edit", path)

    def new(self, folder: str = "") -> str:
        return self._address("new", folder)

    def delete(self, path: str) -> str:
        return self._address("delete", path)

    def upload(self, folder: str = "") -> str:
        return self._address("upload", folder)

    def raw(self, path: str) -> str:
        return self._address("raw", path)

    def resolve(self, path: str) -> str:
        return self._address("resolve", path)

    def download(self, path: str) -> str:
        return f"{self.resolve(path)}?download=true"

    def commits(self, path: str = "") -> str:
        return self._address("commits", path)

    def commit(self, sha: str) -> str:
        return f"{self.repo}/commit/{sha}"

    def compare(self, base: str) -> str:
        return f"{self.repo}/compare/{revision_segment(base)}...{revision_segment(self.revision)}"

    def at(self, revision: str) -> "FileLinks":
        return FileLinks(repo=self.repo, revision=revision)

    def crumbs(self, name: str, path: str) -> list[tuple[str, str | None]]:
        """Return the parts of a path as `ui.crumbs` takes them; the last one is where we are."""
        if not path:
            return [(name, None)]
        parts = path.split("/")
        above = [(part, self.tree("/".join(parts[: n + 1]))) for n, part in enumerate(parts[:-1])]
        return [(name, self.tree()), *above, (parts[-1], None)]

    def _address(self, view: str, path: str) -> str:
        base = f"{self.repo}/{view}/{revision_segment(self.revision)}"
        return f"{base}/{quote(path)}" if path else base
