"""Journeys of people who never saw the hub, in a real Chromium.

Each is gone in four ways: with script, without, on a phone, and by keyboard alone.
"""

import email.policy
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from email.parser import BytesParser
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from acceptance.client_versions import ENVIRONMENTS, VERSIONS
from browsers import WAYS, Person, Way, chromium_browser, needs_chromium
from patience import SOON_SECONDS
from processes import Place, Server, clean_environment, run_hublet, serving, wait_until
from repos.commits import file, header, ndjson

pytestmark = [needs_chromium, pytest.mark.full]

PASSWORD = "correct horse battery"
PROGRAM = "".join(f"step = {number}\n" for number in range(1, 41))
GATED = """---
extra_gated_fields:
  Company: text
  I agree: checkbox
---
# Calculator
"""
# The smallest picture there is.
PICTURE = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
# What nobody may learn of the private repository, wherever they look.
SECRETS = ("Steam secret", "boiler", "dot.gif", "Leaky valve")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("journeys"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    # Webhooks may call a receiver that a test runs.
    variables = {"HUBLET_MAIL_DELAY_SECONDS": "0", "HUBLET_OUTGOING_ALLOW": "127.0.0.1/32"}
    with serving(place, variables=variables) as server:
        yield server


@pytest.fixture(scope="module")
def owner(server: Server) -> Iterator[httpx2.Client]:
    """The client of the administrator, who owns what others look for."""
    with server.client(server.token) as client:
        for way in WAYS:
            name, address = name_of(way), f"{name_of(way)}@people.example"
            body = {"name": name, "password": PASSWORD, "email": address}
            made = client.post("/api/admin/users", json=body)
            assert made.status_code == 200, made.text
        yield client


def name_of(way: Way) -> str:
    """Return the person who goes this way: each is new to everything."""
    return f"grace-{way}"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture
def new_person(chromium: Browser, server: Server, way: Way) -> Iterator[Callable[[], Person]]:
    """Makes people, each with a browser that knows nobody; its complaints fail the test."""
    complaints: list[str] = []
    contexts: list[BrowserContext] = []

    def make() -> Person:
        context = chromium.new_context(
            base_url=server.address,
            java_script_enabled=way.has_script,
            viewport={"width": way.width, "height": 844},
        )
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.address)
        context.on("console", lambda message: complaints.append(message.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        return Person(context, way)

    yield make
    for context in contexts:
        context.close()
    assert [text for text in complaints if not re.search(r"status of 4\d\d", text)] == []


@pytest.fixture
def person(new_person: Callable[[], Person]) -> Person:
    return new_person()


def commit(
    client: httpx2.Client,
    repo: str,
    *files: tuple[str, str | bytes],
    to: str = "main",
    **query: str,
) -> None:
    lines = ndjson(header(), *(file(path, content) for path, content in files))
    path = f"/api/models/{repo}/commit/{quote(to, safe='')}"
    done = client.post(path, content=lines, params=query)
    assert done.status_code == 200, done.text


def run_client(script: str, folder: Path, token: str | None, address: str) -> str:
    """Run a script of the shell with the public client, as its readers would."""
    variables = {
        "HF_ENDPOINT": address,
        "HF_HOME": str(folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PATH": f"{ENVIRONMENTS / VERSIONS[-1] / 'bin'}:/usr/bin:/bin",
        **({} if token is None else {"HF_TOKEN": token}),
    }
    ended = subprocess.run(
        ["/bin/bash", "-ec", script],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=SOON_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def printed_url(
    owner: httpx2.Client, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The address that `hf upload` prints, after it made the repository of a model."""
    folder = tmp_path_factory.mktemp("upload")
    (folder / "engine").mkdir()
    (folder / "engine" / "train.py").write_text(PROGRAM)
    (folder / "engine" / "README.md").write_text("---\nlicense: mit\n---\n# Engine\n")
    printed = run_client("hf upload admin/engine engine .", folder, server.token, server.address)
    [url] = re.findall(r"http\S+/commit/[0-9a-f]{40}", printed)
    return str(url)


def test_from_the_terminal_to_a_line(
    person: Person, new_person: Callable[[], Person], printed_url: str
) -> None:
    page = person.page
    page.goto(printed_url)
    expect(page.locator("tr.add", has_text="step = 40")).to_be_visible()
    person.expect_fit()
    person.press(page.get_by_role("link", name="Browse files here"))
    expect(page).to_have_url(re.compile("/tree/[0-9a-f]{40}$"))
    person.press(page.get_by_role("link", name="train.py", exact=True))
    expect(page).to_have_url(re.compile(r"/train\.py$"))
    expect(page.locator("#L40")).to_contain_text("step = 40")
    person.expect_fit()
    person.press(page.get_by_role("link", name="12", exact=True))
    expect(page).to_have_url(re.compile(r"/train\.py#L12$"))

    colleague = new_person()
    colleague.page.goto(page.url)
    marked = colleague.page.locator("tr:target")
    expect(marked).to_contain_text("step = 12")
    expect(marked).to_be_in_viewport()
    assert background_of(colleague.page, "#L12") != background_of(colleague.page, "#L13")


def background_of(page: Page, line: str) -> str:
    cell = page.locator(f"{line} td.code")
    return str(cell.evaluate("element => getComputedStyle(element).backgroundColor"))


def test_find_and_use_a_model(
    person: Person, printed_url: str, server: Server, run_snippet: Callable[[str], str]
) -> None:
    page, way = person.page, person.way
    wait_for_search(server)
    page.goto("/")
    field = page.get_by_label("Search models, datasets, people")
    if way.has_script and way.width > 390:
        page.keyboard.press("/")
        expect(field).to_be_focused()
        page.keyboard.type("eng")
    else:
        person.write(field, "eng")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search\?q=eng$"))
    person.press(page.locator("main").get_by_role("link", name="admin/engine"))
    expect(page).to_have_url(re.compile("/admin/engine$"))
    expect(page.locator("article.md")).to_contain_text("Engine")
    person.expect_fit()

    assert "train.py" in run_snippet(copied_snippet(person))

    acts = page.locator("#acts")
    person.press(acts.get_by_role("link", name="Like"))
    person.sign_in(name_of(way), PASSWORD)
    expect(page).to_have_url(re.compile("/admin/engine$"))
    person.press(acts.get_by_role("button", name="Like"))
    liked = acts.get_by_role("button", name="Liked")
    expect(liked).to_be_visible()
    if way.by_keyboard:
        # The part of the page is new; whoever pressed the button is still there.
        expect(liked).to_be_focused()


def wait_for_search(server: Server) -> None:
    with server.client() as client:
        wait_until(
            lambda: "admin/engine" in client.get("/search", params={"q": "eng"}).text,
            seconds=SOON_SECONDS,
        )


def copied_snippet(person: Person) -> str:
    """Return what is in the clipboard then, or what one would have marked without script."""
    box = person.page.locator("details.way[open] .boxed")
    button = box.get_by_role("button", name="Copy")
    if not person.way.has_script:
        expect(button).to_be_hidden()
        return box.locator("code").inner_text()
    person.press(button)
    expect(box.get_by_role("button", name="Copied")).to_be_visible()
    return str(person.page.evaluate("navigator.clipboard.readText()"))


@pytest.fixture(scope="module")
def run_snippet(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a snippet of a page with the public client, and lists what it brought."""
    folder = tmp_path_factory.mktemp("download")

    @cache
    def run(snippet: str) -> str:
        brought = run_client(snippet, folder, None, server.address)
        return run_client(f"ls {brought.split()[-1]}", folder, None, server.address)

    return run


@pytest.fixture(scope="module")
def gated(owner: httpx2.Client) -> str:
    owner.post("/api/repos/create", json={"name": "calculator"}).raise_for_status()
    commit(owner, "admin/calculator", ("README.md", GATED), ("weights.txt", "42"))
    settings = {"gated": "manual"}
    owner.put("/api/models/admin/calculator/settings", json=settings).raise_for_status()
    return "/admin/calculator"


def test_a_gate_from_the_link_to_the_files(
    new_person: Callable[[], Person],
    owner: httpx2.Client,
    server: Server,
    place: Place,
    gated: str,
    way: Way,
) -> None:
    stranger, name = new_person(), name_of(way)
    page = stranger.page
    page.goto(gated)
    expect(page.locator("article.md")).to_contain_text("Calculator")
    expect(page.locator("#gate")).to_contain_text("What is asked: Company, I agree.")
    stranger.press(page.get_by_role("link", name="Sign in to ask"))
    stranger.sign_in(name, PASSWORD)
    expect(page).to_have_url(re.compile(f"{gated}$"))
    stranger.write(page.get_by_label("Company"), "Navy")
    stranger.check(page.get_by_label("I agree"))
    stranger.press(page.get_by_role("button", name="Ask for access"))
    expect(page.locator("#gate")).to_contain_text("admin has not decided yet.")
    stranger.expect_fit()

    wait_until(
        lambda: f"{name} asks to read the model admin/calculator" in inbox_of(owner),
        seconds=SOON_SECONDS,
    )
    decide(new_person(), server, gated, name)

    link = link_in_mail(place, to=name, subject="You may read", link=r"http\S+/tree/\S+")
    page.goto(link)
    stranger.press(page.get_by_role("link", name="weights.txt", exact=True))
    expect(page.locator("td.code")).to_have_text("42")


def inbox_of(client: httpx2.Client) -> list[str]:
    """Return the titles of the hub's own messages in an inbox."""
    items = client.get("/api/notifications").json()["notifications"]
    return [item["post"]["title"] for item in items if "post" in item]


def decide(keeper: Person, server: Server, repo: str, name: str) -> None:
    """Let the owner accept a request, by way of the settings."""
    assert server.user is not None
    assert server.password is not None
    page = keeper.page
    page.goto(f"{repo}/settings")
    keeper.sign_in(server.user, server.password)
    keeper.press(page.get_by_role("link", name="Who asked"))
    request = page.get_by_role("article").filter(
        has=page.get_by_role("link", name=name, exact=True)
    )
    expect(request).to_contain_text("Navy")
    keeper.expect_fit()
    keeper.press(request.get_by_role("button", name="Accept"))
    expect(page.get_by_role("status")).to_contain_text("The request is accepted.")


def link_in_mail(place: Place, *, to: str, subject: str, link: str) -> str:
    """Wait for a mail to a person, and return the address in it that looks so."""
    links: list[str] = []

    def is_there() -> bool:
        for path in (place.data_dir / "mail").rglob("*"):
            if path.is_file():
                mail = BytesParser(policy=email.policy.default).parsebytes(path.read_bytes())
                if f"{to}@" in str(mail["To"]) and subject in str(mail["Subject"]):
                    body = mail.get_body(("plain",))
                    assert body is not None
                    links[:] = re.findall(link, body.get_content())
        return bool(links)

    wait_until(is_there, seconds=SOON_SECONDS)
    return links[0]


def test_review_and_merge(
    person: Person, owner: httpx2.Client, server: Server, place: Place, way: Way
) -> None:
    name, page = name_of(way), person.page
    with server.client(token_of(place, name)) as client:
        client.post("/api/repos/create", json={"name": "loom"}).raise_for_status()
        repo = f"{name}/loom"
        commit(client, repo, ("notes.txt", "one\ntwo\nthree\n"))
        commit(owner, repo, ("notes.txt", "one\nTWO\nthree\n"), create_pr="1")
        commit(client, repo, ("notes.txt", "one\n2\nthree\n"))
    thread = rf"http\S+/{repo}/discussions/\d+"
    page.goto(link_in_mail(place, to=name, subject=repo, link=thread))
    person.press(page.locator("main").get_by_role("link", name="sign in"))
    person.sign_in(name, PASSWORD)
    expect(page).to_have_url(re.compile(thread))
    person.write(page.get_by_label("Your comment"), "Could you bring it up to date, @admin?")
    person.press(page.get_by_role("button", name="Comment", exact=True))
    expect(page.locator("article").last).to_contain_text("Could you bring it up")
    expect(page.locator("article").last.get_by_role("link", name="@admin")).to_be_visible()
    box = page.locator("#merge-box")
    expect(box).to_contain_text("1 file changed on both sides")
    expect(box).to_contain_text("line 2")
    person.expect_fit()

    # What is pushed and said elsewhere appears by itself where there is script.
    discussion = f"/api/models/{repo}/discussions/1/comment"
    owner.post(discussion, json={"comment": "Soon."}).raise_for_status()
    commit(owner, repo, ("notes.txt", "one\n2\nthree\n"), to="refs/pr/1")

    if not way.has_script:
        page.reload()
    expect(page.locator("article").last).to_contain_text("Soon.")
    expect(box).to_contain_text("No conflicts with main")
    person.press(page.get_by_role("button", name="Merge", exact=True))
    expect(page.locator("#timeline li").last).to_contain_text(f"{name} merged this as")
    expect(page.locator("#thread-state")).to_contain_text("Merged")


def token_of(place: Place, name: str) -> str:
    made = run_hublet("token", "create", name, *place.flags, folder=place.folder)
    assert made.returncode == 0, made.stderr
    [token] = re.findall(r"hf_\w+", made.stdout)
    return str(token)


def fill_inbox(owner: httpx2.Client, grace: httpx2.Client, name: str) -> None:
    """Let somebody hear of 40 threads in 4 repositories, 28 of which are closed."""
    repos = [f"{name}/{each}" for each in ("boiler-plate", "crank", "lever", "piston")]
    for repo in repos:
        body = {"name": repo.partition("/")[2]}
        grace.post("/api/repos/create", json=body).raise_for_status()
    for number in range(40):
        repo = repos[number % 4]
        words = {"title": f"Question {number} on {repo}", "description": "How?"}
        path = f"/api/models/{repo}/discussions"
        owner.post(path, json=words).raise_for_status()
        if number < 28:
            path = f"{path}/{number // 4 + 1}/status"
            owner.post(path, json={"status": "closed"}).raise_for_status()

    def is_quiet() -> bool:
        # What is closed comes in once more, and the last of all is open.
        page = grace.get("/api/notifications", params={"readStatus": "unread"}).json()
        first = page["notifications"][0] if page["notifications"] else {}
        return page["count"]["unread"] == 40 and "39" in first["discussion"]["title"]

    wait_until(is_quiet, seconds=2 * SOON_SECONDS)


def test_morning_inbox(
    person: Person, owner: httpx2.Client, server: Server, place: Place, way: Way
) -> None:
    name, page = name_of(way), person.page
    with server.client(token_of(place, name)) as grace:
        grace.post("/api/notifications/mark-as-read?applyToAll=true").raise_for_status()
        fill_inbox(owner, grace, name)
    page.goto("/notifications")
    person.sign_in(name, PASSWORD)
    tabs = page.get_by_role("navigation", name="Inbox")
    expect(tabs.get_by_role("link", name="Unread 40")).to_be_visible()
    person.expect_fit()
    other = page.context.new_page()
    other.goto("/")
    badge = other.get_by_role("link", name=re.compile("^Inbox"))
    expect(badge).to_have_accessible_name("Inbox, 40 unread")

    person.press(page.get_by_role("button", name="Done: merged and closed"))
    expect(tabs.get_by_role("link", name="Unread 12")).to_be_visible()
    expect(page.locator(".inbox-group")).to_have_count(4)
    person.press(page.get_by_role("button", name=f"Done: all of {name}/lever"))
    expect(page.locator(".inbox-group")).to_have_count(3)
    title = f"Question 36 on {name}/boiler-plate"
    mute = page.get_by_role("button", name=f"Mute: {title}")
    person.press(mute)
    expect(page.get_by_role("status").filter(has_text="1 thread is muted.")).to_be_visible()
    expect(mute).to_have_count(0)
    person.press(page.get_by_role("button", name="Undo"))
    expect(mute).to_be_visible()
    expect(tabs.get_by_role("link", name="Unread 9")).to_be_visible()
    person.expect_fit()

    if way.has_script:
        page.keyboard.press("j")
        expect(page.locator(".inbox-row a").first).to_be_focused()
        page.keyboard.press("e")
    else:
        person.press(page.locator(".inbox-row").first.get_by_role("button", name="Done"))
        expect(tabs.get_by_role("link", name="Unread 8")).to_be_visible()
        other.reload()
    expect(tabs.get_by_role("link", name="Unread 8")).to_be_visible()
    expect(badge).to_have_accessible_name("Inbox, 8 unread")
    # What another window does is seen here, too.
    other.goto("/notifications")
    other.get_by_role("button", name=f"Done: all of {name}/crank").click()
    if not way.has_script:
        page.reload()
    expect(tabs.get_by_role("link", name="Unread 5")).to_be_visible()


@pytest.fixture(scope="module")
def private_paths(owner: httpx2.Client) -> dict[str, tuple[str, str]]:
    """Addresses of private things of an organization, each with one where nothing is."""
    owner.post("/api/organizations", json={"name": "steam"}).raise_for_status()
    for way in WAYS:
        path = f"/api/organizations/steam/members/{name_of(way)}"
        owner.put(path, json={"role": "read"}).raise_for_status()
    body = {"name": "boiler", "organization": "steam", "private": True}
    owner.post("/api/repos/create", json=body).raise_for_status()
    readme = "# Steam secret\n\n![A dot](dot.gif)\n"
    commit(owner, "steam/boiler", ("README.md", readme), ("dot.gif", PICTURE))
    thread = {"title": "Leaky valve", "description": "It is hot."}
    owner.post("/api/models/steam/boiler/discussions", json=thread).raise_for_status()
    hook = {
        "url": "https://hooks.example/boiler",
        "watched": [{"type": "org", "name": "steam"}],
        "domains": ["repo"],
    }
    webhook = owner.post("/api/settings/webhooks", json=hook).raise_for_status().json()["webhook"]
    return {
        "repository": ("/steam/boiler", "/steam/nothing"),
        "file": ("/steam/boiler/blob/main/dot.gif", "/steam/nothing/blob/main/dot.gif"),
        "picture": ("/steam/boiler/resolve/main/dot.gif", "/steam/nothing/resolve/main/dot.gif"),
        "thread": ("/steam/boiler/discussions/1", "/steam/nothing/discussions/1"),
        "job": (f"/jobs/steam/{job_of(owner)}", f"/jobs/steam/{'f' * 24}"),
        "webhook": (f"/settings/webhooks/{webhook['id']}", f"/settings/webhooks/{'f' * 24}"),
    }


def job_of(owner: httpx2.Client) -> str:
    body = {
        "dockerImage": "boiler",
        "command": ["true"],
        "arguments": [],
        "environment": {},
        "flavor": "cpu-basic",
    }
    made = owner.post("/api/jobs/steam", json=body)
    assert made.status_code == 200, made.text
    return str(made.json()["id"])


@pytest.fixture(scope="module")
def anonymous(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        client.headers["Accept"] = "text/html"
        yield client


def masked(page: httpx2.Response, path: str) -> str:
    """Return an answer without what must differ: its address, and what is random."""
    text = page.text.replace(path, "PATH").replace(path.replace("/", "%2F"), "PATH")
    return re.sub(r'(?<=name="form_token" value=")[0-9a-f]+', "TOKEN", text)


@pytest.mark.parametrize("what", ["repository", "file", "picture", "thread", "job", "webhook"])
def test_private_and_absent_are_one_page(
    anonymous: httpx2.Client, private_paths: dict[str, tuple[str, str]], what: str
) -> None:
    private, absent = private_paths[what]
    hidden, nothing = (anonymous.get(path) for path in (private, absent))

    assert masked(hidden, private) == masked(nothing, absent)
    assert hidden.status_code == nothing.status_code
    volatile = {"x-request-id", "date", "content-length", "etag", "location"}
    kept = [
        {name: value for name, value in each.headers.items() if name not in volatile}
        for each in (hidden, nothing)
    ]
    limits = re.compile("ratelimit", re.IGNORECASE)
    assert {n: v for n, v in kept[0].items() if not limits.search(n)} == {
        n: v for n, v in kept[1].items() if not limits.search(n)
    }
    if what in {"repository", "file", "picture", "thread", "job"}:
        assert hidden.status_code == 404
        assert ">Sign in</a>" in hidden.text
    text = masked(hidden, private)
    assert [secret for secret in SECRETS if secret in text] == []


def test_private_stays_private_and_readers_see_its_pictures(
    person: Person, private_paths: dict[str, tuple[str, str]]
) -> None:
    page = person.page
    for path, _ in list(private_paths.values())[:5]:
        page.goto(path)
        expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
        expect(page.locator("body")).not_to_contain_text("Steam secret")
        person.expect_fit()

    repo, _ = private_paths["repository"]
    page.goto(repo)
    person.press(page.locator("main").get_by_role("link", name="Sign in"))
    person.sign_in(name_of(person.way), PASSWORD)
    expect(page).to_have_url(re.compile(f"{repo}$"))
    expect(page.get_by_role("heading", name="Steam secret")).to_be_visible()
    picture = page.get_by_role("img", name="A dot")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1)


class Receiver(ThreadingHTTPServer):
    """A receiver of webhooks as people write them: it takes what has its secret."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.secret = "what it was told long ago"
        self.refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        is_known = self.headers["X-Webhook-Secret"] == self.server.secret
        body = b"" if is_known else b"I was told another secret."
        self.send_response(200 if is_known else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.refused += not is_known

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = Thread(target=receiver.serve_forever)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


def a_failing_webhook(client: httpx2.Client, name: str, receiver: Receiver) -> str:
    """Add a webhook with a secret that its receiver does not know, and let three deliveries fail."""
    hook = {
        "url": receiver.url,
        "watched": [{"type": "user", "name": name}],
        "domains": ["repo"],
        "secret": "what it is today",
    }
    made = client.post("/api/settings/webhooks", json=hook).raise_for_status()
    for repo in ("warp", "weft", "web"):
        client.post("/api/repos/create", json={"name": repo}).raise_for_status()
    wait_until(lambda: receiver.refused >= 3, seconds=SOON_SECONDS)
    return str(made.json()["webhook"]["id"])


def let_days_pass(place: Place, client: httpx2.Client, webhook: str) -> None:
    """Let its deliveries be where six days of failures lead; the next attempt is the last."""
    day = 86_400_000_000

    def is_suspended() -> bool:
        now = time.time_ns() // 1000
        with closing(sqlite3.connect(place.data_dir / "hub.db", timeout=60)) as database:
            database.execute(
                "UPDATE webhook_deliveries SET tries = 10, due_at = ? "
                "WHERE webhook_id = ? AND state = 'pending' AND claimed_by IS NULL",
                (now, webhook),
            )
            database.execute(
                "UPDATE webhook_lanes SET failures = 3, failing_since = ?, degraded_since = NULL, "
                "exhausted = 9, first_exhausted_at = ?, last_exhausted_at = ?, next_due_at = ? "
                "WHERE webhook_id = ?",
                (now - 6 * day, now - 3 * day, now - day, now, webhook),
            )
            database.commit()
        shown = client.get(f"/api/settings/webhooks/{webhook}").json()["webhook"]
        return bool(shown["disabled"])

    wait_until(is_suspended, seconds=SOON_SECONDS)


def test_a_broken_webhook_is_mended(
    new_person: Callable[[], Person],
    owner: httpx2.Client,
    server: Server,
    place: Place,
    receiver: Receiver,
    way: Way,
) -> None:
    name = name_of(way)
    with server.client(token_of(place, name)) as client:
        webhook = a_failing_webhook(client, name, receiver)
        let_days_pass(place, client, webhook)
    link = link_in_mail(place, to=name, subject="is suspended", link=rf"http\S+/{webhook}")
    person, colleague = new_person(), new_person()
    page = person.page
    for each in (person, colleague):
        each.page.goto(link)
        each.sign_in(name, PASSWORD)
        expect(each.page.locator("#webhook-head")).to_contain_text("Suspended")
    expect(page.locator("#webhook-head")).to_contain_text("the secret it expects may be another")
    person.expect_fit()

    person.press(page.locator("#delivery-tabs").get_by_role("link", name="Failed"))
    expect(page).to_have_url(re.compile("state=failed"))
    person.press(page.locator("#delivery-rows").get_by_role("link").first)
    attempts = page.locator("#attempts")
    expect(attempts.locator(".badge", has_text="401").first).to_be_visible()
    expect(attempts).to_contain_text("I was told another secret.")
    person.expect_fit()

    person.press(page.get_by_role("link", name="Webhook", exact=True))
    person.press(page.get_by_role("button", name="Rotate the secret"))
    receiver.secret = page.locator("#new-secret").inner_text()
    person.press(page.get_by_role("button", name="Test", exact=True))
    expect(page.locator("#delivery-head")).to_contain_text("Delivered 200")

    person.press(page.get_by_role("link", name="Webhook", exact=True))
    since = page.get_by_label("Everything that failed or was not sent since (UTC)")
    if not way.by_keyboard:
        since.fill(time.strftime("%Y-%m-%dT00:00", time.gmtime()))
    person.press(page.get_by_role("button", name="Resume and recover"))
    expect(page.get_by_role("status").last).to_contain_text("3 deliveries sent again.")
    for each in (person, colleague):
        expect_arrived(each, count=4)


def expect_arrived(person: Person, *, count: int) -> None:
    """Wait until so many deliveries are green, by themselves where there is script."""
    page = person.page
    rows = page.locator("#delivery-rows .badge.ok")
    if not person.way.has_script:
        wait_until(
            lambda: page.reload() is not None and rows.count() == count, seconds=SOON_SECONDS
        )
    expect(rows).to_have_count(count)
    expect(page.locator("#webhook-head")).to_contain_text("Well")


@pytest.fixture
def team(owner: httpx2.Client, way: Way) -> str:
    """An organization that the person of this way administers, and somebody who is new there."""
    team = f"team-{way}"
    body = {"name": team, "plan": "enterprise"}
    owner.post("/api/admin/organizations", json=body).raise_for_status()
    member = f"/api/admin/organizations/{team}/members/{name_of(way)}"
    owner.put(member, json={"role": "admin"}).raise_for_status()
    newcomer = {"name": f"luigi-{way}", "password": PASSWORD}
    owner.post("/api/admin/users", json=newcomer).raise_for_status()
    return team


def test_new_in_the_team(person: Person, server: Server, team: str, way: Way) -> None:
    page, newcomer = person.page, f"luigi-{way}"
    settings = page.get_by_role("navigation", name=f"Settings of {team}")
    page.goto(f"/organizations/{team}/settings/members")
    person.sign_in(name_of(way), PASSWORD)
    person.write(page.get_by_label("User name"), newcomer)
    person.press(page.get_by_role("button", name="Add", exact=True))
    expect(page.get_by_role("status")).to_contain_text(f"{newcomer} is a member.")
    person.choose(page.get_by_label(f"Role of {newcomer}", exact=True), "write")
    person.press(page.get_by_role("button", name=f"Save the role of {newcomer}"))
    expect(page.get_by_role("status")).to_contain_text(f"The role of {newcomer} is saved.")
    expect(page.get_by_label(f"Role of {newcomer}", exact=True)).to_have_value("write")
    person.expect_fit()

    person.press(settings.get_by_role("link", name="Resource groups"))
    person.write(page.get_by_label("Name", exact=True), "research")
    person.press(page.get_by_role("button", name="Create"))
    person.press(page.get_by_role("link", name="research"))
    person.write(page.get_by_label("User name"), newcomer)
    person.choose(page.get_by_label("Role here"), "contributor")
    person.press(page.get_by_role("button", name="Add", exact=True))
    expect(page.get_by_label(f"Role of {newcomer}", exact=True)).to_have_value("contributor")
    person.expect_fit()

    person.press(settings.get_by_role("link", name="Service accounts"))
    person.write(page.get_by_label("Name", exact=True), f"ci-{way}")
    person.press(page.get_by_role("button", name="Create"))
    person.press(page.get_by_role("link", name=f"Tokens of ci-{way}"))
    person.write(page.get_by_label("Name", exact=True), "runner")
    person.press(page.get_by_role("button", name="Make token"))
    token = page.locator("#new-token").inner_text()
    with server.client(token) as program:
        assert program.get("/api/whoami-v2").json()["name"] == f"ci-{way}"
    person.expect_fit()
    person.press(settings.get_by_role("link", name="Service accounts"))
    person.press(page.get_by_role("link", name=f"Tokens of ci-{way}"))
    expect(page.get_by_text("runner", exact=True)).to_be_visible()
    expect(page.locator("body")).not_to_contain_text(token)

    person.press(settings.get_by_role("link", name="Audit log"))
    log = page.locator("main")
    expect(log).to_contain_text(f"gave {newcomer} the role write")
    expect(log).to_contain_text(f"created the token runner of ci-{way}")
    expect(log).to_contain_text("admin created the organization")
    person.write(page.get_by_label("Person"), name_of(way))
    person.press(page.get_by_role("button", name="Filter"))
    expect(page).to_have_url(re.compile(f"actor={name_of(way)}"))
    expect(log).to_contain_text(f"{name_of(way)} added {newcomer} with the role read")
    expect(log).not_to_contain_text("admin created the organization")
    person.expect_fit()
