"""A page of a tree of 100,000 files against one of a tree of 1,000."""

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.content import OWNER, Account, commit_body
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import populate, serving
from benchmarks.rounds import LoadTarget, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

MANY = 100_000
FEW = 1_000
_PAGE = 1_000
_FILES_PER_COMMIT = 20_000
_CONNECTIONS = 4
# Design 6: a page of what has grown large is within 1.5 times of a small one.
_GOAL = Goal(floor=0.67, aim=0.9, more_is_better=True, of="ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How the files of a repository lie: so many in each folder."""

    name: str
    per_folder: int

    def path(self, number: int) -> str:
        return f"folder-{number // self.per_folder:05}/{number:06}.txt"


_FOLDERS = _Layout(name="in folders of 1,000", per_folder=1_000)
_FLAT = _Layout(name="in one folder", per_folder=10 * MANY)


def measure(bench: Workbench) -> Iterator[Row]:
    """Pages of 1,000 entries of a large repository, first and deep, as a share of a small one."""
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    many = max(int(MANY * bench.share), 2 * FEW)
    with serving(site, core=bench.cores.server) as hub:
        account = Account(hub=hub, token=token)
        _fill(account, "few", FEW, _FOLDERS)
        for layout in (_FOLDERS, _FLAT):
            _fill(account, repo := f"many-{layout.per_folder}", many, layout)
            yield from _rows(bench, account, repo, many, layout)


def _fill(account: Account, repo: str, count: int, layout: _Layout) -> None:
    account.create_repo(repo)
    for start in range(0, count, _FILES_PER_COMMIT):
        numbers = range(start, min(start + _FILES_PER_COMMIT, count))
        account.commit(
            repo, commit_body({layout.path(number): b"%06d\n" % number for number in numbers})
        )


def _rows(
    bench: Workbench, account: Account, repo: str, count: int, layout: _Layout
) -> Iterator[Row]:
    first = _first_page(repo)
    deep = _page_behind(account, first, pages=count // _PAGE // 2)
    small = _first_page("few")
    rounds = alternate(
        [_target(account, path) for path in (small, first, deep)],
        connections=_CONNECTIONS,
        seconds=bench.seconds,
        rounds=bench.rounds,
        core=bench.cores.load,
    )
    for name, path in (("first page", first), ("page in the middle", deep)):
        yield compare(
            f"tree of {count:,} files {layout.name}, {name}",
            ours=[each.rate for each in rounds[path]],
            other=[each.rate for each in rounds[small]],
            other_is=f"the first page of {FEW:,} files; all pages recursive, {_PAGE:,} entries",
            unit="/s",
            goal=_GOAL,
        )


def _first_page(repo: str) -> str:
    return f"/api/models/{OWNER}/{repo}/tree/main?recursive=true"


def _target(account: Account, path: str) -> LoadTarget:
    request = request_bytes("GET", path, headers=account.headers)
    hub = account.hub
    return LoadTarget(name=path, process_id=hub.child.id, port=hub.port, request=request)


def _page_behind(account: Account, path: str, *, pages: int) -> str:
    """Follow the links from page to page, and return the address of the one behind."""
    connection = http.client.HTTPConnection("127.0.0.1", account.hub.port)
    try:
        for _ in range(pages):
            connection.request("GET", path, headers=account.headers)
            response = connection.getresponse()
            response.read()
            link = response.getheader("link") or ""
            if response.status != 200 or not link:
                raise Spoiled(f"{path} answered {response.status} and no next page.")
            following = urlsplit(link[link.index("<") + 1 : link.index(">")])
            path = f"{following.path}?{following.query}"
    finally:
        connection.close()
    return path
