"""Hostile texts in a real Chromium: wherever a page shows them, nothing runs, loads or leaves."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, Dialog, Page, Request, Route

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, serving
from repos.commits import file, header, ndjson
from security.markdown_corpus import FOREIGN, MARKDOWN, SCRIPTS, hostile_texts

pytestmark = [needs_chromium, pytest.mark.full]

# Every text that would open a dialog leaves a mark instead, which needs no waiting.
MARKED = [
    re.sub(r"alert(\(|`)", r"window.pwned=1;alert\1", text)
    for text in [*SCRIPTS, *FOREIGN, *MARKDOWN, *hostile_texts()[len(SCRIPTS) :][::8]]
]
# What fits on one line of a file name, a title or a commit.
SHORT = [
    text for text in SCRIPTS + FOREIGN if text.isprintable() and len(text) < 120 and "/" not in text
]
# What a browser is told to watch for before any page runs.
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(event.violatedDirective + " " + event.blockedURI);
});
window.__listeners = [];
const add = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (kind, ...rest) {
  if (this === window || this === document) window.__listeners.push(kind);
  return add.call(this, kind, ...rest);
};
"""
# Of the scripts of the pages themselves.
OWN_LISTENERS = {
    "click", "fresh", "hashchange", "keydown", "pagehide", "pageshow", "paste", "submit", "toggle",
    "visibilitychange", "input", "drop", "dragover", "dragleave", "focusin", "beforeunload",
    "problem", "listen", "stream",
}  # fmt: skip


@dataclass
class Watch:
    """A page, and everything on it that must not happen."""

    page: Page
    origin: str
    harm: list[str] = field(default_factory=list)

    def start(self) -> None:
        page = self.page
        page.add_init_script(_WATCH)
        page.on("dialog", self._dismiss)
        page.on("console", lambda message: self._console(message.text))
        page.on("pageerror", lambda error: self.harm.append(str(error)))
        page.on("popup", lambda popup: self.harm.append(f"popup {popup.url}"))
        page.on("request", self._note_request)

    def _dismiss(self, dialog: Dialog) -> None:
        self.harm.append(dialog.message)
        dialog.dismiss()

    def _console(self, text: str) -> None:
        if not re.search(r"status of 4\d\d", text):
            self.harm.append(text)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:")):
            self.harm.append(f"asks {request.url}")

    def visit(self, path: str) -> None:
        self.page.goto(f"{self.origin}{path}", wait_until="load")
        found = self.page.evaluate(
            "[window.pwned, window.violations, window.__listeners, document.title]"
        )
        pwned, violations, listeners, title = found
        if pwned or title == "pwned":
            self.harm.append(f"{path}: a script ran")
        self.harm += [f"{path}: {each}" for each in violations]
        self.harm += [f"{path}: listens to {each}" for each in set(listeners) - OWN_LISTENERS]
        if not self.page.url.startswith(f"{self.origin}/"):
            self.harm.append(f"{path} went to {self.page.url}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(Place(folder=tmp_path_factory.mktemp("hostile"))) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client(server.token) as client:
        yield client


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture
def watch(chromium: Browser, server: Server) -> Iterator[Watch]:
    context = chromium.new_context()
    watch = Watch(page=context.new_page(), origin=server.address)
    watch.start()
    yield watch
    context.close()


def commit(client: httpx2.Client, repo: str, summary: str, files: dict[str, str]) -> str:
    lines = ndjson(header(summary), *(file(path, text) for path, text in files.items()))
    done = client.post(f"/api/models/{repo}/commit/main", content=lines)
    assert done.status_code == 200, done.text
    return str(done.json()["commitOid"])


def encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def test_the_corpus_is_large() -> None:
    assert len(set(MARKED)) >= 200
    assert len(SHORT) >= 30


def test_the_watch_sees_harm(watch: Watch) -> None:
    # Otherwise the tests below would prove nothing.
    harmful = (
        "<script>window.pwned = 1</script>",
        "<img src=https://evil.example/x.png>",
        "<script>alert(1)</script>",
        "<script>addEventListener('message', () => 1)</script>",
    )
    for number, html in enumerate(harmful):
        assert harm_of(watch, f"/harm-{number}", html), html
    assert harm_of(watch, "/refused", "<script>1</script>", "script-src 'none'")
    assert harm_of(watch, "/harmless", "<p>1</p>") == []


def harm_of(watch: Watch, path: str, html: str, policy: str = "img-src *") -> list[str]:
    headers = {"Content-Security-Policy": policy}

    def respond(route: Route) -> None:
        route.fulfill(body=html, content_type="text/html", headers=headers)

    watch.page.route(f"**{path}", respond)
    watch.harm.clear()
    watch.visit(path)
    return list(watch.harm)


def test_hostile_readmes(client: httpx2.Client, watch: Watch) -> None:
    client.post("/api/repos/create", json={"name": "readmes"}).raise_for_status()
    files = {f"{number}/README.md": encodable(text) for number, text in enumerate(MARKED)}
    commit(client, "admin/readmes", "Add texts", files)
    for number in range(len(MARKED)):
        watch.visit(f"/admin/readmes/blob/main/{number}/README.md")
    assert watch.harm == []


def test_hostile_names_titles_and_messages(client: httpx2.Client, watch: Watch) -> None:
    tags = json.dumps([each[:100] for each in SHORT[:20]])
    client.post("/api/repos/create", json={"name": "names"}).raise_for_status()
    readme = f"---\ntags: {tags}\npipeline_tag: {json.dumps(SHORT[0])}\n---\n{SHORT[1]}"
    shas = [commit(client, "admin/names", SHORT[0], {"README.md": readme})]
    names = {f"{number} {name}.txt": name for number, name in enumerate(SHORT) if "\\" not in name}
    shas.append(commit(client, "admin/names", SHORT[8], names))
    for number, text in enumerate(SHORT[:12]):
        shas.append(commit(client, "admin/names", text, {"changed.html": f"{text}{number}"}))
    for text in SHORT[:6]:
        body = {"title": text[:200], "description": text}
        client.post("/api/models/admin/names/discussions", json=body).raise_for_status()
    paths = ["", "/tree/main", "/commits/main", "/discussions", "/settings"]
    paths += [f"/commit/{sha}" for sha in shas]
    paths += [f"/discussions/{number}" for number in range(1, 7)]
    paths += ["/blob/main/changed.html", "/blame/main/changed.html"]
    for path in paths:
        watch.visit(f"/admin/names{path}")
    for name in list(names)[:10]:
        watch.visit(f"/admin/names/blob/main/{quote(name)}")
    for text in SHORT[:5]:
        watch.visit(f"/search?{httpx2.QueryParams(q=text)}")
        watch.visit(f"/models?{httpx2.QueryParams(search=text, filter=text, author=text)}")
    assert watch.harm == []


def test_hostile_comments(client: httpx2.Client, watch: Watch) -> None:
    client.post("/api/repos/create", json={"name": "talk"}).raise_for_status()
    path = "/api/models/admin/talk/discussions"
    texts = MARKED[::2]
    for start in range(0, len(texts), 20):
        opened = client.post(path, json={"title": "Texts", "description": "x"}).raise_for_status()
        number = opened.json()["num"]
        for text in texts[start : start + 20]:
            body = {"comment": encodable(text).replace("\x00", "") or "x"}
            client.post(f"{path}/{number}/comment", json=body).raise_for_status()
        watch.visit(f"/admin/talk/discussions/{number}")
    assert watch.harm == []


def test_hostile_files(client: httpx2.Client, watch: Watch) -> None:
    client.post("/api/repos/create", json={"name": "files"}).raise_for_status()
    texts = [encodable(text) for text in MARKED[::4]]
    cells = [{"cell_type": "markdown", "source": text, "metadata": {}} for text in texts] + [
        {
            "cell_type": "code",
            "source": text,
            "metadata": {},
            "execution_count": 1,
            "outputs": [
                {"output_type": "display_data", "data": {"text/html": text}, "metadata": {}},
                {"output_type": "stream", "name": "stdout", "text": f"\x1b[31m{text}\x1b]8;;x\x07"},
                {"output_type": "display_data", "data": {"image/svg+xml": text}, "metadata": {}},
            ],
        }
        for text in texts[::3]
    ]
    svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1;alert(1)</script><image href="https://evil.example/x.png"/></svg>'
    rows = "\n".join('"' + text.replace('"', '""').replace("\n", " ") + '",1' for text in texts)
    files = {
        "book.ipynb": json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}),
        "table.csv": f"a,b\n{rows}\n",
        "rows.jsonl": "".join(json.dumps({"a": text}) + "\n" for text in texts),
        "page.html": "<script>window.pwned=1</script>" + "\n".join(texts),
        "drawing.svg": svg,
        "colours.log": "\n".join(f"\x1b[31m{text}\x1b[0m" for text in texts),
        "README.md": "![x](drawing.svg)",
    }
    commit(client, "admin/files", "Add files", files)
    for name in files:
        watch.visit(f"/admin/files/blob/main/{name}")
        watch.visit(f"/admin/files/blob/main/{name}?code=true")
    for name in ("page.html", "drawing.svg"):
        # Opened by itself, a file is inert, and says so by the policy that refuses its scripts.
        response = client.get(f"/admin/files/resolve/main/{name}")
        assert "sandbox" in response.headers["content-security-policy"]
    watch.visit("/admin/files")
    assert watch.harm == []


def test_hostile_names_of_people(client: httpx2.Client, watch: Watch) -> None:
    for number, text in enumerate(SHORT[:5]):
        body = {"name": f"person-{number}", "fullname": text[:100]}
        made = client.post("/api/admin/users", json=body)
        assert made.status_code in {200, 400}, made.text
        if made.status_code == 200:
            watch.visit(f"/person-{number}")
    assert watch.harm == []
