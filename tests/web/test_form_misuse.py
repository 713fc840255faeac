"""Misuse of every form: each POST route of the pages is asked the same questions.

The routes are those of the pages themselves: one that is new is asked too, and has to name here what
stands for the parts of its path that no other route has.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from community.discussions import PATH, a_pull_request
from community.public_threads import a_comment, a_thread
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.pages import PageRoute
from hublet.login import sessions
from hublet.login.forms import form_token
from hublet.login.records import Session, Visitor
from hublet.repos import attachments
from hublet.web import auth
from hublet.web.routes import ROUTERS
from hublet.web.uploads import MOST_FIELD_BYTES
from jobs.jobs_api import run
from jobs.schedules_api import a_schedule
from people import Headers, a_user, sign_in
from repositories import a_repo
from web.parsed_pages import HTML

ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, PageRoute)]
POSTS = [route.path for route in ROUTES if "POST" in route.methods]
GETS = {route.path for route in ROUTES if "GET" in route.methods}

# No session is needed, so there is no token that could be bound to one: the origin is checked alone.
# The first is kept by the browser of who sends it; the others are the ways into an account.
WITHOUT_SESSION = {
    "/settings/theme",
    "/join",
    "/forgot-password",
    "/reset-password/{token}",
    "/invitations/{token}/join",
}
FORMS = [path for path in POSTS if path not in WITHOUT_SESSION]

# What only an owner may do with a public repository; the rest is for everybody who sees it.
OWNERS_FORMS = re.compile(
    r"/(containers|buckets)/.*"
    r"|/collections/.*/items.*"
    r"|/jobs/.*"
    r"|/.+/(settings/.*|branches/.*|merge|conflicts|pin|title|status|edit|hide|delete|delete-ref)"
)
# Forms with files, or with the text of one: their bodies are read piece by piece.
WITH_FILES = re.compile(r"/\{repo:repo\}/(edit|new|upload)/.*|/(containers|buckets)/.*/upload")

# Would change something, wherever the form is taken.
FIELDS = {
    "add": "heart",
    "do": "done all",
    "comment": "Forged",
    "confirm": "ada/engine",
    "content": "Forged",
    "description": "Forged",
    "email": "forged@example.com",
    "fullname": "Forged",
    "key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKlD5fs7LCSzTvhFSEBwaFX6JVN5Rm+6oFZmgOaBYVDw",
    "expires": "0",
    "password": "correct horse",
    "tools": "forged",
    "flavor": "cpu-basic",
    "gated": "auto",
    "ignore": "true",
    "image": "ubuntu",
    "labels": "forged",
    "name": "forged",
    "owner": "ada",
    "pinned": "true",
    "schedule": "@yearly",
    "status": "close",
    "title": "Forged",
    "to": "ada/forged",
    "role": "admin",
    "type": "model",
    "user": "charles",
    "visibility": "private",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What stands in the addresses of somebody's things."""

    repo: str
    comment_id: str
    person: str
    # The slug of a blog, and a comment on it.
    blog: str
    blog_comment_id: str
    job: str
    schedule: str

    def path_of(self, route: str) -> str:
        parts = {
            "{repo:page_repo}": self.repo,
            "{repo:repo}": self.repo,
            "{rest:revision}": "main/README.md",
            "{num:int}": "1",
            "{comment_id}": self.blog_comment_id if "public" in route else self.comment_id,
            "{folder:public_folder}": "blog",
            "{place:public_place}": f"blog/{self.person}",
            "{slug}": self.blog,
            # A bucket or container is called as its owner.
            "{namespace}": self.person,
            "{name}": self.person,
            "{path:path}": "notes.txt",
            # A tag of a container.
            "{rest:path}": "latest",
            "{webhook_id}": "0" * 24,
            "{publisher_id}": "0" * 24,
            "{email_id}": "0" * 24,
            "{token_id}": "0" * 24,
            "{key_id}": "0" * 24,
            # Of an invitation, or of a link to a new password.
            "{token}": "a" * 43,
            "{owner}": self.person,
            "{job_id}": self.job,
            "{schedule_id}": self.schedule,
            "{delivery_id}": "0" * 24,
            # Everybody administers an organization, with one other member.
            "{organization}": f"{self.person}-engines",
            "{member}": "grace",
            "{group_id}": "0" * 24,
            "{invitation_id}": "0" * 24,
            "{account_id}": "0" * 24,
            "{item_id}": "0" * 24,
            # A saved query of a dataset.
            "{query}": "0" * 24,
            # Of the addresses whose holders may join an organization.
            "{domain}": "example.com",
        }
        path = re.sub(r"\{.*?\}", lambda part: parts.get(part[0], part[0]), route)
        assert "{" not in path, f"Name in `Place.path_of` what stands for a part of {path}."
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A browser with ada's session, her repository, and those of charles."""

    client: httpx2.AsyncClient
    database: Database
    session: Session
    own: Place
    public: Place
    private: Place

    def token(self, purpose: str) -> str:
        return form_token(self.database.hub, self.session, purpose)

    async def post(self, route: str, path: str, token: str = "", **headers: str) -> httpx2.Response:
        sent = HTML | {"Form-Token": token} | headers
        files = {"files": ("forged.txt", b"Forged")} if WITH_FILES.fullmatch(route) else None
        fields = FIELDS | {"form_token": token}
        return await self.client.post(path, data=fields, files=files, headers=sent)


@pytest.fixture
def purposes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The purposes for which forms are checked, as they come."""
    found: list[str] = []
    check = auth.check_form

    def noting(request: Any, form: Any, session: Session, purpose: str) -> None:
        found.append(purpose)
        check(request, form, session, purpose)

    monkeypatch.setattr(auth, "check_form", noting)
    return found


async def a_place(
    client: httpx2.AsyncClient, headers: Headers, repo: str, *, private: bool = False
) -> Place:
    await a_repo(client, headers, repo, private=private)
    address = await a_pull_request(client, headers, PATH.replace("ada/engine", repo))
    details = (await client.get(address, headers=headers)).json()
    owner = repo.partition("/")[0]
    engines = f"{owner}-engines"
    await client.post("/api/organizations", headers=headers, json={"name": engines})
    await client.put(
        f"/api/organizations/{engines}/members/grace", headers=headers, json={"role": "read"}
    )
    blog = await a_thread(client, headers, "blog")
    for kind in ("bucket", "container"):
        box = {"name": owner, "type": kind}
        await client.post("/api/repos/create", headers=headers, json=box)
        await client.put(
            f"/api/{kind}s/{owner}/{owner}/files/notes.txt", headers=headers, content=b""
        )
    # The short slug of a collection is that of the blog.
    collection = {"title": blog.rpartition("/")[2], "namespace": owner, "private": private}
    await client.post("/api/collections", headers=headers, json=collection)
    job = await run(client, headers, path=f"/api/jobs/{owner}")
    schedule = await a_schedule(client, headers, path=f"/api/scheduled-jobs/{owner}")
    return Place(
        repo=repo,
        job=job["id"],
        schedule=schedule["id"],
        comment_id=details["events"][0]["id"],
        person=owner,
        blog=blog.rpartition("/")[2],
        blog_comment_id=await a_comment(client, headers, blog),
    )


@pytest.fixture
async def scene(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Scene:
    charles = await sign_in(database, "charles")
    await a_user(database, "grace")
    own = await a_place(client, ada, "ada/engine")
    public = await a_place(client, charles, "charles/public")
    private = await a_place(client, charles, "charles/private", private=True)
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        session, cookie = await sessions.begin(conn, user, Visitor(address="127.0.0.1", agent=None))
    client.cookies.set("hublet_session", cookie)
    return Scene(
        client=client,
        database=database,
        session=session,
        own=own,
        public=public,
        private=private,
    )


@pytest.fixture
async def unchanged(scene: Scene, ada: Headers) -> Callable[[], Awaitable[None]]:
    """Asserts that nothing of what forms could change has changed."""
    addresses = [
        f"/api/models/{place.repo}{path}"
        for place in (scene.own, scene.public)
        for path in ("", "/discussions", "/discussions/1")
    ]
    for place in (scene.own, scene.public):
        addresses += [f"/api/blog/{place.person}/{place.blog}{path}" for path in ("", "/comments")]
        addresses += [f"/api/collections?owner={place.person}"]
        addresses += [
            f"/api/{kind}/{place.person}/{place.person}/tree" for kind in ("buckets", "containers")
        ]
        addresses += [
            f"/api/organizations/{place.person}-engines/{path}" for path in ("overview", "members")
        ]
    addresses += [
        "/api/models?author=ada",
        "/api/users/charles/overview",
        "/api/users/forged/overview",
    ]
    addresses += [
        f"/api/settings/{each}"
        for each in (
            "profile",
            "emails",
            "tokens",
            "ssh-keys",
            "mcp",
            "notifications",
            "watch",
            "mute",
        )
    ]
    # What a job says of its durations grows by itself.
    addresses += ["/api/jobs/ada/count?stage=SCHEDULING", "/api/scheduled-jobs/ada"]

    async def state() -> list[str]:
        # Asking is a use of the token, and nothing else.
        answers = [(await scene.client.get(each, headers=ada)).text for each in addresses]
        return [re.sub(r',"lastUsedAt":"[^"]*"', "", each) for each in answers]

    before = await state()

    async def check() -> None:
        assert await state() == before

    return check


def test_every_form_is_a_page() -> None:
    # Otherwise the questions below would not be asked of it.
    others = [route for router in ROUTERS for route in router.routes if route not in ROUTES]
    assert [route for route in others if getattr(route, "methods", set()) - {"GET", "HEAD"}] == []
    assert all(route.methods <= {"GET", "POST"} for route in ROUTES)
    assert len(POSTS) > 20


def wrong_tokens(scene: Scene) -> Iterator[str]:
    yield ""
    yield "00" * 64
    yield scene.token("sign out")
    yield scene.token("repository of nobody")


async def test_a_form_without_the_token_of_its_page_is_refused(
    scene: Scene, purposes: list[str], unchanged: Callable[[], Awaitable[None]]
) -> None:
    taken = {}
    for route in FORMS:
        for token in wrong_tokens(scene):
            purposes.clear()
            response = await scene.post(route, scene.own.path_of(route), token)
            is_page = response.headers["content-type"].startswith("text/html")
            if (response.status_code, is_page, len(purposes)) != (403, True, 1):
                taken[route, token] = response.status_code
    assert taken == {}
    await unchanged()


async def test_a_form_of_another_site_is_refused(
    scene: Scene, purposes: list[str], unchanged: Callable[[], Awaitable[None]]
) -> None:
    taken = {}
    for route in POSTS:
        path = scene.own.path_of(route)
        purposes.clear()
        await scene.post(route, path)
        token = scene.token(purposes[0]) if route in FORMS else ""
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            response = await scene.post(route, path, token, **headers)
            if response.status_code != 403:
                taken[route] = response.status_code
    assert taken == {}
    await unchanged()


async def test_the_token_of_another_session_is_refused(
    scene: Scene, purposes: list[str], unchanged: Callable[[], Awaitable[None]]
) -> None:
    user = await a_user(scene.database, "ada")
    async with scene.database.transaction() as conn:
        other, _ = await sessions.begin(conn, user, Visitor(address="127.0.0.1", agent=None))
    taken = {}
    for route in FORMS:
        path = scene.own.path_of(route)
        purposes.clear()
        await scene.post(route, path)
        token = form_token(scene.database.hub, other, purposes[0])
        response = await scene.post(route, path, token)
        if response.status_code != 403:
            taken[route] = response.status_code
    assert taken == {}
    await unchanged()


async def test_who_is_signed_out_is_sent_to_the_login(
    scene: Scene, unchanged: Callable[[], Awaitable[None]]
) -> None:
    scene.client.cookies.clear()
    taken = {}
    for route in FORMS:
        response = await scene.post(route, scene.own.path_of(route), scene.token("new repository"))
        location = response.headers.get("location", "")
        if response.status_code != 303 or not location.startswith("/login"):
            taken[route] = response.status_code
    assert taken == {}
    await unchanged()


async def test_a_link_does_nothing(scene: Scene, unchanged: Callable[[], Awaitable[None]]) -> None:
    taken = {}
    for route in set(POSTS) - GETS:
        response = await scene.client.get(scene.own.path_of(route), headers=HTML, params=FIELDS)
        if response.status_code not in {404, 405}:
            taken[route] = response.status_code
    assert taken == {}
    for route in set(POSTS) & GETS:
        await scene.client.get(scene.own.path_of(route), headers=HTML, params=FIELDS)
    await unchanged()


async def test_a_body_that_is_too_large_is_refused(
    scene: Scene,
    settings: Settings,
    purposes: list[str],
    unchanged: Callable[[], Awaitable[None]],
) -> None:
    taken = {}
    for route in POSTS:
        path = scene.own.path_of(route)
        purposes.clear()
        await scene.post(route, path)
        token = scene.token(purposes[0]) if purposes else ""
        if WITH_FILES.fullmatch(route):
            fields = {"form_token": token, "text": "x" * (MOST_FIELD_BYTES + 1)}
            files = {"files": ("a", b"")}
            response = await scene.client.post(path, data=fields, files=files, headers=HTML)
        else:
            is_file = route.endswith("/attachments")
            limit = attachments.LARGEST if is_file else settings.limits.body_bytes
            response = await scene.client.post(
                path,
                content=b"x" * (limit + 1),
                headers=HTML | {"Content-Type": "image/png", "Form-Token": token},
            )
        if response.status_code != 413:
            taken[route] = response.status_code
    assert taken == {}
    await unchanged()


async def test_what_somebody_may_not_see_is_not_found(
    scene: Scene, purposes: list[str], unchanged: Callable[[], Awaitable[None]]
) -> None:
    taken = {}
    for route in [path for path in FORMS if "{repo:" in path]:
        hidden = await scene.post(route, scene.private.path_of(route))
        nowhere = scene.private.path_of(route).replace("private", "nothing")
        absent = await scene.post(route, nowhere)
        if (hidden.status_code, absent.status_code) != (404, 404) or purposes:
            taken[route] = hidden.status_code
        assert masked(hidden) == masked(absent)
    assert taken == {}
    await unchanged()


def masked(page: httpx2.Response) -> str:
    """Return a page without the address that was asked for, and without its tokens."""
    text = page.text.replace("private", "nothing")
    return re.sub(r'value="[0-9a-f]{64,}"', "", text)


async def test_what_belongs_to_others_stays_as_it_is(
    scene: Scene, purposes: list[str], unchanged: Callable[[], Awaitable[None]]
) -> None:
    taken = {}
    # What stands below /settings belongs to whoever is signed in.
    forms = [route for route in FORMS if not route.startswith("/settings/")]
    for route in filter(OWNERS_FORMS.fullmatch, forms):
        path = scene.public.path_of(route)
        purposes.clear()
        await scene.post(route, path)
        token = scene.token(purposes[0]) if purposes else ""
        response = await scene.post(route, path, token)
        if response.status_code not in {403, 404}:
            taken[route] = response.status_code
    assert taken == {}
    await unchanged()
