"""Demo week: what four people and a robot did on a hub in the last seven days, hour by hour.

All of it goes through the API, as if their programs had asked: events, counts, inboxes and search
follow as usual. What happens is the same in every demo; only ids and secrets differ.
"""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from hublet.accounts.users import service as accounts
from hublet.cli import demo_data as texts
from hublet.cli.demo_hub import Chance, DemoHub, answer, silence
from hublet.cli.demo_jobs import DemoJobs
from hublet.core.clock import now
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import Origin
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import store as consents
from hublet.oauth.records import Permission, Via
from hublet.tokens.records import Scope
from hublet.webhooks.records import Attempt, ClaimedDelivery

HOURS = 7 * 24
# How often the robot of the observatory commits.
_ROBOT_HOURS = 4

# What is there to look at afterwards, beside the pages of jobs: an address, and what it shows.
PAGES = (
    (f"/{texts.ENGINE}", "a model: card with a picture, files, history, downloads, threads"),
    (f"/{texts.ENGINE}/discussions", "questions and pull requests: open, merged, in conflict"),
    (f"/{texts.GATED}", "a gated model, with people who asked for access"),
    (f"/datasets/{texts.PLATES}", "a dataset that a robot commits to"),
    ("/buckets/analytical-engines/checkpoints", "a bucket with files"),
    ("/papers", "papers, and at /posts and /blog what people publish"),
    ("/analytical-engines", "an organization with members and repositories"),
    ("/notifications", "an inbox, with unread and read items"),
    ("/jobs/ada", "jobs of every stage with logs and usage, and scheduled ones"),
    ("/settings/webhooks", "webhooks that are well, degraded and suspended, with deliveries"),
    ("/settings/connected-applications", "an application that ada let in"),
)

Files = Mapping[str, bytes | str]
_Step = Callable[["DemoWeek"], Awaitable[None]]


class DemoWeek:
    """The week as it is filled: the hub, when it began, and what later hours need of earlier ones."""

    def __init__(self, hub: DemoHub, start: datetime, jobs: DemoJobs) -> None:
        self.hub = hub
        self.jobs = jobs
        self.start = start
        self.threads: dict[str, int] = {}

    async def fill(self) -> None:
        """Let the hours pass; after each one everything follows, and deliveries are tried."""
        hub = self.hub
        for hour in range(HOURS):
            hub.set_time(self.start + timedelta(hours=hour, minutes=1))
            for step in _STORY.get(hour, ()):
                await step(self)
                hub.set_time(now() + timedelta(minutes=7))
            if hour % _ROBOT_HOURS == 2:  # noqa: PLR2004 - the third of them
                await self.commit_as_robot(hour)
            if hour % 24 == 20:  # noqa: PLR2004 - in the evening
                await self.download(hour)
            await self.jobs.fill_hour(self.start + timedelta(hours=hour))
            hub.set_time(self.start + timedelta(hours=hour, minutes=30))
            await hub.settle()
            await hub.deliver()
            hub.set_time(self.start + timedelta(hours=hour, minutes=58))
            await hub.deliver()
        hub.set_time(self.start + timedelta(hours=HOURS))
        await self.jobs.finish()
        await hub.settle()

    async def create(self, who: str, name: str, kind: str, **body: object) -> None:
        owner, _, short = name.partition("/")
        whole: dict[str, object] = {"name": short, "type": kind, **body}
        if owner != who:
            whole["organization"] = owner
        if kind == "space":
            whole["sdk"] = "static"
        await self.hub.ask(who, "POST", "/api/repos/create", whole)

    async def commit(
        self, who: str, repo: str, files: Files, title: str, text: str = "", **query: str
    ) -> Any:
        lines: list[dict[str, Any]] = [
            {"key": "header", "value": {"summary": title, "description": text}}
        ]
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            value = {"path": path, "content": base64.b64encode(data).decode(), "encoding": "base64"}
            lines.append({"key": "file", "value": value})
        body = "\n".join(json.dumps(line) for line in lines).encode()
        path = f"/api/{repo}/commit/main"
        kind = "application/x-ndjson"
        return await self.hub.ask(who, "POST", path, content=body, kind=kind, **query)

    async def propose(self, who: str, name: str, files: Files, title: str, text: str) -> None:
        """Open a pull request at the engine; it is known by a name from then on."""
        opened = await self.commit(who, f"models/{texts.ENGINE}", files, title, text, create_pr="1")
        self.threads[name] = int(opened["pullRequestUrl"].rpartition("/")[2])

    async def comment(self, who: str, name: str, text: str, *, liked_by: Mapping[str, str]) -> None:
        """Comment in a thread of the engine; others react with an emoji each."""
        path = f"/api/models/{texts.ENGINE}/discussions/{self.threads[name]}/comment"
        made = await self.hub.ask(who, "POST", path, {"comment": text})
        for other, emoji in liked_by.items():
            await self.hub.ask(
                other, "POST", f"{path}/{made['newMessage']['id']}/reactions/{emoji}"
            )

    async def commit_as_robot(self, hour: int) -> None:
        chance = self.hub.random
        rows = [
            f"{hour},{n},{chance.uniform(2, 19):.2f},{chance.uniform(0, 1):.4f}" for n in range(20)
        ]
        night = (self.start + timedelta(hours=hour)).strftime("%Y-%m-%d-%Hh")
        files = {f"nights/{night}.csv": "hour,star,magnitude,error\n" + "\n".join(rows) + "\n"}
        await self.commit(
            "katherine", f"datasets/{texts.PLATES}", files, f"Add the plates of {night}"
        )

    async def download(self, hour: int) -> None:
        """Count the downloads of a day, more of them each day."""
        for repo, most in ((f"models/{texts.ENGINE}", 40), (f"datasets/{texts.PLATES}", 15)):
            repo_id = (await self.hub.ask("ada", "GET", f"/api/{repo}"))["_id"]
            for visitor in range(self.hub.random.randrange(5, 8 + most * (hour // 24 + 1) // 4)):
                self.hub.downloads.count(repo_id, who=f"{hour} {visitor}")
        await self.hub.downloads.flush()


# ---------------------------------------------------------------- the story


async def _create_engine(week: DemoWeek) -> None:
    await week.create("ada", texts.ENGINE, "model")
    files: Files = {
        "README.md": texts.CARD,
        "config.json": texts.model_config(layers=32),
        "src/train.py": texts.TRAIN,
        "plot.png": texts.plot_picture(decay=60),
        "results.csv": "task,engine,baseline\nGSM8K,58.1,54.2\nMATH,23.0,21.7\n",
        "model.safetensors": texts.tensors(),
    }
    await week.commit("ada", f"models/{texts.ENGINE}", files, "Add the engine")
    for who, name, kind, readme in texts.OTHERS:
        is_private = name.endswith("difference")
        await week.create(who, name, kind, private=is_private)
        files = {"README.md": readme} | (
            {"index.html": "<h1>Bombe</h1>"} if kind == "space" else {}
        )
        await week.commit(who, f"{kind}s/{name}", files, "Add the card")
    await week.hub.ask("ada", "PUT", f"/api/models/{texts.GATED}/settings", {"gated": "manual"})


async def _create_storage(week: DemoWeek) -> None:
    ask = week.hub.ask
    await week.create("ada", "analytical-engines/checkpoints", "bucket")
    await week.create("katherine", "night-sky/observatory", "container")
    for step in range(3):
        content = week.hub.random.randbytes(400_000)
        path = f"/api/buckets/analytical-engines/checkpoints/files/run-1/step-{step}000.bin"
        await ask("ada", "PUT", path, content=content, kind="application/octet-stream")
    notes = b"Run 1: the loss falls.\nRun 2: with a warm-up.\n"
    path = "/api/buckets/analytical-engines/checkpoints/files/notes.txt"
    await ask("grace", "PUT", path, content=notes, kind="text/plain")
    path = "/api/containers/night-sky/observatory/files/sky.png"
    await ask("katherine", "PUT", path, content=texts.plot_picture(decay=25), kind="image/png")


async def _watch(week: DemoWeek) -> None:
    for who, kind, path in (
        ("ada", "repo", f"/api/models/{texts.ENGINE}"),
        ("ada", "repo", f"/api/datasets/{texts.PLATES}"),
        ("grace", "repo", f"/api/models/{texts.ENGINE}"),
    ):
        target = (await week.hub.ask(who, "GET", path))["_id"]
        body = {"add": [{"id": target, "type": kind}]}
        await week.hub.ask(who, "PATCH", "/api/settings/watch", body)


async def _add_webhooks(week: DemoWeek) -> None:
    own = "/api/settings/webhooks"
    watched = [
        {"type": "model", "name": texts.ENGINE},
        {"type": "dataset", "name": texts.PLATES},
    ]
    domains = ["repo", "discussion"]
    for url, receiver in (
        ("https://ci.demo.example/hooks/engine", _ci),
        ("https://chat.demo.example/rooms/engine", _chat),
        ("https://mirror.demo.example/push", _mirror),
    ):
        body = {
            "url": url,
            "watched": watched,
            "domains": domains,
            "secret": "a secret of the demo",
        }
        made = await week.hub.ask("ada", "POST", own, body)
        week.hub.receivers[made["webhook"]["id"]] = receiver(week, url)
    path = "/api/organizations/analytical-engines/settings/webhooks"
    watched = [{"type": "org", "name": "analytical-engines"}]
    url = "https://audit.demo.example/engines"
    body = {"url": url, "watched": watched, "domains": domains}
    made = await week.hub.ask("ada", "POST", path, body)
    week.hub.receivers[made["webhook"]["id"]] = _ci(week, url)


_Receiver = Callable[[ClaimedDelivery, Chance], Attempt]


def _ci(_week: DemoWeek, url: str) -> _Receiver:
    """A receiver that is well: now and then it fails, and answers the second time."""

    def receive(delivery: ClaimedDelivery, chance: Chance) -> Attempt:
        if delivery.tries == 0 and chance.uniform(0, 1) < 0.06:  # noqa: PLR2004 - as seldom as that
            text = "upstream restarts"
            return answer(delivery, chance, url, 502, text, why="The target failed with 502.")
        return answer(delivery, chance, url, 200, '{"queued": true}')

    return receive


def _chat(week: DemoWeek, url: str) -> _Receiver:
    """A receiver that has been silent since this morning, and is degraded."""
    silent_from = week.start + timedelta(hours=HOURS - 9)

    def receive(delivery: ClaimedDelivery, chance: Chance) -> Attempt:
        if now() < silent_from:
            return answer(delivery, chance, url, 204, "")
        return silence(delivery, url, reason="timeout", detail="No answer within 10 seconds.")

    return receive


def _mirror(week: DemoWeek, url: str) -> _Receiver:
    """A receiver that went away on the fifth day, which suspended its webhook."""
    gone_from = week.start + timedelta(days=4, hours=3)

    def receive(delivery: ClaimedDelivery, chance: Chance) -> Attempt:
        if now() < gone_from:
            return answer(delivery, chance, url, 200, "ok")
        why = "The target answered that it is gone for good (410)."
        return answer(delivery, chance, url, 410, "moved away", why=why)

    return receive


async def _ask_question(week: DemoWeek) -> None:
    path = f"/api/models/{texts.ENGINE}/discussions"
    week.threads["question"] = (await week.hub.ask("alan", "POST", path, texts.QUESTION))["num"]


async def _discuss(week: DemoWeek, *names: str) -> None:
    for who, name, text, liked_by in texts.COMMENTS:
        if name in names:
            await week.comment(who, name, text, liked_by=liked_by)


async def _answer_question(week: DemoWeek) -> None:
    await _discuss(week, "question")
    for who, repo in texts.LIKES:
        await week.hub.ask(who, "POST", f"/api/{repo}/like")


async def _propose(week: DemoWeek) -> None:
    for who, name, path, content, title, text in texts.PROPOSALS:
        await week.propose(who, name, {path: content}, title, text)


async def _merge(week: DemoWeek) -> None:
    path = f"/api/models/{texts.ENGINE}/discussions/{week.threads['merged']}/merge"
    await week.hub.ask("ada", "POST", path, {})
    await _discuss(week, "merged")


async def _release(week: DemoWeek) -> None:
    repo = f"models/{texts.ENGINE}"
    files: Files = {
        "config.json": texts.model_config(layers=40),
        "plot.png": texts.plot_picture(decay=40),
        "results.csv": "task,engine,baseline\nGSM8K,61.4,54.2\nMATH,24.9,21.7\n",
    }
    await week.commit("ada", repo, files, "Train for four epochs", "The loss falls further.")
    tag = {"tag": "v1.0", "message": "Four epochs"}
    await week.hub.ask("ada", "POST", f"/api/{repo}/tag/main", tag)
    await week.hub.ask("ada", "POST", f"/api/{repo}/branch/longer-context", {})


async def _ask_for_access(week: DemoWeek) -> None:
    for who, company in (("katherine", "Night Sky Survey"), ("alan", "Open Notebook")):
        fields = {"Company": company, "Country": "GB", "Use": "Research"}
        fields |= {"I agree to the terms": "on"}
        await week.hub.ask(who, "POST", f"/{texts.GATED}/ask-access", fields)
    path = f"/api/models/{texts.GATED}/user-access-request/handle"
    await week.hub.ask("ada", "POST", path, {"user": "katherine", "status": "accepted"})


async def _publish(week: DemoWeek) -> None:
    ask = week.hub.ask
    for who, paper in texts.PAPERS:
        await ask(who, "POST", "/api/papers/index", paper)
    await ask("grace", "POST", "/api/papers/2401.12345/upvote")
    post = (await ask("grace", "POST", "/api/posts", texts.POST))["slug"]
    blog = (await ask("ada", "POST", "/api/blog", texts.BLOG))["slug"]
    for who, path, text in (
        ("grace", "papers/2401.12345", "Section G is the one to read."),
        ("alan", f"posts/grace/{post}", "Congratulations!"),
        ("katherine", f"blog/ada/{blog}", "I checked the numbers: they are right."),
    ):
        await ask(who, "POST", f"/api/{path}/comment", {"comment": text})


async def _set_up_account(week: DemoWeek) -> None:
    """Add an SSH key, and two apps, each of which somebody has connected."""
    ask = week.hub.ask
    await ask("ada", "POST", "/api/settings/ssh-keys", {"title": "laptop", "key": texts.SSH_KEY})
    for owner, name, user in (("ada", "Loom", "grace"), ("grace", "Almanac", "ada")):
        site = f"https://{name.lower()}.demo.example"
        body = {"name": name, "redirectUris": [f"{site}/in"], "clientUri": site}
        app = await ask(owner, "POST", "/api/settings/oauth-apps", body)
        async with week.hub.database.transaction() as conn:
            user_id = (await accounts.get_user(conn, user)).id
            scopes = frozenset({Scope.openid, Scope.profile})
            known = await apps.find(conn, app["clientId"])
            assert known is not None  # noqa: S101 - for the type: it was made just now
            permission = Permission(user_id=user_id, app_id=known.id, scopes=scopes)
            await consents.put_consent(conn, permission, revision=known.revision)
            origin = Origin(address="192.0.2.7", agent=texts.BROWSER, authenticated_at=now())
            await accesses.begin(conn, permission, Via.code, origin=origin)


async def _organize(week: DemoWeek) -> None:
    path = "/api/organizations/analytical-engines"
    await week.hub.ask("ada", "PATCH", path, {"fullname": "Analytical Engines Ltd"})
    await week.hub.ask("ada", "PUT", f"{path}/members/alan", {"role": "write"})
    files = {"wheels.json": '{"wheels": 8}\n'}
    await week.commit("grace", "models/analytical-engines/difference", files, "Count the wheels")


async def _disagree(week: DemoWeek) -> None:
    await _discuss(week, "conflict", "ready")


async def _read_inbox(week: DemoWeek) -> None:
    """Read some of what came; the rest stays unread."""
    items = await week.hub.ask("ada", "GET", "/api/notifications")
    threads = [each["discussion"]["id"] for each in items["notifications"] if "discussion" in each]
    body = {"discussionIds": threads[:2]}
    await week.hub.ask("ada", "POST", "/api/notifications/mark-as-read", body)


# By the hour of the week.
_STORY: dict[int, tuple[_Step, ...]] = {
    1: (_create_engine, _create_storage),
    2: (_watch, _add_webhooks),
    9: (_ask_question, _set_up_account),
    28: (_answer_question,),
    33: (_propose,),
    51: (_merge, _publish),
    75: (_release, _ask_for_access),
    100: (_organize,),
    140: (_read_inbox,),
    HOURS - 5: (_disagree,),
}
