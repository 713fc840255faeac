"""Files are changed in a real Chromium: with script and without, wide and at 390 pixels."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
# A drop as the operating system would make it: two files, one of which a megabyte long.
DROP = """(zone) => {
  const carried = new DataTransfer();
  carried.items.add(new File(["dropped"], "a.txt"));
  carried.items.add(new File([new Uint8Array(1 << 20)], "b.bin"));
  for (const kind of ["dragover", "drop"]) {
    zone.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
  }
}"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("edits"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place) as server:
        yield server


@pytest.fixture(scope="module")
def ada(server: Server, place: Place) -> httpx2.Client:
    """A client of ada, who also has a password."""
    for words in (("user", "add", "ada", "--password", PASSWORD), ("token", "create", "ada")):
        made = run_hublet(*words, *place.flags, folder=place.folder)
        assert made.returncode == 0, made.stderr
    [token] = re.findall(r"hf_\w+", made.stdout)
    return server.client(token)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["script", "no script", "phone"])
def browser(
    chromium: Browser, server: Server, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A browser of each kind; whatever it complains about fails the test."""
    complaints: list[str] = []
    context = chromium.new_context(
        base_url=server.address,
        viewport={"width": 390 if request.param == "phone" else 1360, "height": 900},
        java_script_enabled=request.param != "no script",
    )
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("console", lambda message: complaints.append(message.text))
    yield context
    context.close()
    # A refusal is a line in the console of Chromium.
    assert [each for each in complaints if "status of 422" not in each] == []


def sign_in(context: BrowserContext, path: str) -> Page:
    page = context.new_page()
    page.goto(f"/login?next={path}")
    page.get_by_label("Name or e-mail address").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**{path}")
    return page


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_from_an_empty_repository_to_an_edited_readme(
    browser: BrowserContext, ada: httpx2.Client, request: pytest.FixtureRequest
) -> None:
    repo = f"ada/{request.node.callspec.id.replace(' ', '-')}-1"
    ada.post("/api/repos/create", json={"name": repo}).raise_for_status()
    page = sign_in(browser, f"/{repo}")
    page.get_by_role("link", name="Create a README").click()
    page.get_by_label("Text").fill("# Engine\n\nIt runs.")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview h1")).to_have_text("Engine")
    assert fits(page)
    page.get_by_role("button", name="Create the file").click()
    expect(page.get_by_role("status")).to_contain_text("is in main.")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text").fill("# Engine\n\nIt runs fast.")
    page.get_by_label("Title").fill("Faster")
    page.get_by_role("button", name="Commit the change").click()

    expect(page.locator(".md")).to_contain_text("It runs fast.")
    assert page.url.endswith("/blob/main/README.md")
    raw = ada.get(f"/{repo}/raw/main/README.md")
    assert raw.content == b"# Engine\n\nIt runs fast."


def test_files_are_chosen_and_uploaded(
    browser: BrowserContext, ada: httpx2.Client, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    repo = f"ada/{request.node.callspec.id.replace(' ', '-')}-2"
    ada.post("/api/repos/create", json={"name": repo}).raise_for_status()
    for name, content in (("a.txt", b"a"), ("b.bin", b"\0" * 100)):
        (tmp_path / name).write_bytes(content)
    page = sign_in(browser, f"/{repo}/tree/main")
    page.locator("summary", has_text="Add file").click()
    page.locator("details.add").get_by_role("link", name="Upload files").click()
    page.get_by_label("Folder", exact=True).fill("data")
    page.get_by_label("Files", exact=True).set_input_files([tmp_path / "a.txt", tmp_path / "b.bin"])
    assert fits(page)
    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_role("status")).to_contain_text("is in main.")
    expect(page.get_by_role("link", name="b.bin", exact=True)).to_be_visible()
    assert ada.get(f"/{repo}/resolve/main/data/b.bin").content == b"\0" * 100


@pytest.mark.parametrize("browser", ["script", "phone"], indirect=True)
def test_dropped_files_show_their_progress_and_what_is_wrong(
    browser: BrowserContext, ada: httpx2.Client, request: pytest.FixtureRequest
) -> None:
    repo = f"ada/{request.node.callspec.id}-3"
    ada.post("/api/repos/create", json={"name": repo}).raise_for_status()
    page = sign_in(browser, f"/{repo}/upload/main")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_have_text("Choose at least one file.")
    page.locator(".drop-zone").evaluate(DROP)
    expect(page.locator(".uploads li")).to_have_count(2)
    expect(page.get_by_role("progressbar", name="Progress of b.bin")).to_be_visible()
    assert fits(page)
    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_role("status")).to_contain_text("is in main.")
    expect(page.get_by_role("link", name="a.txt", exact=True)).to_be_visible()
    assert ada.get(f"/{repo}/resolve/main/a.txt").content == b"dropped"
    assert len(ada.get(f"/{repo}/resolve/main/b.bin").content) == 1 << 20


@pytest.mark.parametrize("browser", ["script"], indirect=True)
def test_a_refused_upload_keeps_the_chosen_files(
    browser: BrowserContext, ada: httpx2.Client
) -> None:
    ada.post("/api/repos/create", json={"name": "ada/kept"}).raise_for_status()
    page = sign_in(browser, "/ada/kept/upload/main")
    page.locator(".drop-zone").evaluate(DROP)
    page.get_by_label("Folder", exact=True).fill("..")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("'.' or '..'")
    page.get_by_label("Folder", exact=True).fill("")
    page.get_by_role("button", name="Remove b.bin").click()
    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_role("status")).to_contain_text("is in main.")
    assert page.url.endswith("/blob/main/a.txt")
