"""Pages of files in a real Chromium: from the commit to a marked line, with script and without."""

import base64
import json
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from browsers import chromium_browser, needs_chromium
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

TOKEN = "hf_" + "a" * 34
FILES = {
    "train.py": "".join(f"step = {number}\n" for number in range(1, 101)),
    "many/README.md": "# Many\n\n<script>document.title = 'run'</script>",
    **{f"many/{number:02}.txt": f"text {number}\n" for number in range(25)},
}

# In a commit of their own: once a diff has shown them, their colours are known.
LONG_FILES = {f"long-{name}.py": "step = 1  # next\n" * 2000 for name in ("a", "b", "c")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place) as server:
        yield server


@pytest.fixture(scope="module")
def commit(server: Server, place: Place) -> str:
    """The address of a commit, as it is printed after an upload."""
    for command in (("user", "add", "ada"), ("token", "create", "ada", "--value", TOKEN)):
        added = run_hublet(*command, *place.flags, folder=place.folder)
        assert added.returncode == 0, added.stderr
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=server.address, headers=headers, timeout=SOON_SECONDS) as client:
        client.post("/api/repos/create", json={"name": "ada/engine"}).raise_for_status()
        post_commit(client, LONG_FILES)
        return post_commit(client, FILES)


def post_commit(client: httpx2.Client, files: dict[str, str]) -> str:
    lines: list[dict[str, object]] = [{"key": "header", "value": {"summary": "Add files"}}]
    for path, text in files.items():
        content = base64.b64encode(text.encode()).decode()
        value = {"path": path, "content": content, "encoding": "base64"}
        lines.append({"key": "file", "value": value})
    response = client.post(
        "/api/models/ada/engine/commit/main",
        content="\n".join(map(json.dumps, lines)),
        headers={"Content-Type": "application/x-ndjson"},
    )
    return str(response.raise_for_status().json()["commitUrl"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["with script, wide", "without script, narrow"])
def page(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """A page; whatever the browser complains about fails the test."""
    is_wide = request.param == "with script, wide"
    context = chromium.new_context(
        java_script_enabled=is_wide,
        viewport={"width": 1360 if is_wide else 390, "height": 900},
    )
    page = context.new_page()
    page.set_default_timeout(SOON_SECONDS * 1000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def test_from_the_printed_commit_to_a_line(page: Page, commit: str) -> None:
    page.goto(commit)
    expect(page.get_by_role("heading", name="Add files")).to_be_visible()
    page.get_by_role("link", name="Browse files here").click()
    page.get_by_role("link", name="train.py", exact=True).click()
    page.get_by_role("link", name="12", exact=True).click()

    assert page.url.endswith("/train.py#L12")
    marked = page.locator("tr:target")
    expect(marked).to_contain_text("step = 12")


@pytest.mark.parametrize("page", ["with script, wide"], indirect=True)
def test_the_script_loads_commits_marks_ranges_and_opens_files(page: Page, commit: str) -> None:
    repo = commit.partition("/commit/")[0]
    page.goto(f"{repo}/tree/main")
    expect(page.locator("#rows .msg").last).to_contain_text("Add files")
    page.goto(f"{repo}/blob/main/train.py#L3-L5")
    expect(page.locator("tr.at")).to_have_count(3)
    expect(page.locator(".latest")).to_contain_text("Add files")
    page.goto(commit)
    last = page.locator("details.diff").last
    expect(last).not_to_have_attribute("open", "")
    last.locator("summary").click()
    expect(last.locator("tr.add")).to_have_count(100)


@pytest.mark.parametrize("page", ["with script, wide"], indirect=True)
def test_colours_that_come_later_move_and_unmark_nothing(page: Page, commit: str) -> None:
    page.goto(f"{commit.partition('/commit/')[0]}/blob/main/long-a.py#L1500")
    line = page.locator("#L1500")
    before = line.bounding_box()

    expect(page.locator("#lines[data-later]")).to_have_count(0)

    expect(line.locator(".c")).to_have_text("# next")
    expect(page.locator("tr:target")).to_have_id("L1500")
    assert line.bounding_box() == before


@pytest.mark.parametrize("page", ["with script, wide"], indirect=True)
def test_colours_wait_for_the_end_of_a_selection(page: Page, commit: str) -> None:
    held: list[Route] = []
    page.route(
        "**/long-b.py",
        lambda route: held.append(route) if _is_of_lines(route.request) else route.continue_(),
    )
    with page.expect_request(_is_of_lines):
        page.goto(f"{commit.partition('/commit/')[0]}/blob/main/long-b.py")
    page.locator("#L1 .code").select_text()

    with page.expect_request_finished(_is_of_lines):
        held[0].continue_()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    assert page.evaluate("getSelection().toString()") == "step = 1  # next"
    expect(page.locator("#L1 .c")).to_have_count(0)
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#L1 .c")).to_have_count(1)


def _is_of_lines(request: Request) -> bool:
    return request.headers.get("fragment") == "lines"


@pytest.mark.parametrize("page", ["without script, narrow"], indirect=True)
def test_without_a_script_colours_are_a_link_away(page: Page, commit: str) -> None:
    page.goto(f"{commit.partition('/commit/')[0]}/blob/main/long-c.py")
    page.get_by_role("link", name="Show colours").click()

    expect(page.locator("#L1 .c")).to_have_text("# next")


def test_a_hostile_readme_runs_nothing_and_no_page_is_too_wide(page: Page, commit: str) -> None:
    repo = commit.partition("/commit/")[0]
    for path in ("tree/main/many", "blob/main/train.py", "blame/main/train.py", "commits/main"):
        page.goto(f"{repo}/{path}")
        assert page.title() != "run"
        main = page.locator("main").bounding_box()
        assert main is not None
        assert main["width"] <= (page.viewport_size or {"width": 0})["width"]
