"""Notifications of one user, and jobs in the history of one owner."""

import asyncio
import json
from collections.abc import Mapping

from benchmarks.discussions import add_users
from benchmarks.figures import Spoiled
from benchmarks.growth.curves import Operation, Topic
from benchmarks.growth.local_app import cursor_at, ids_from
from hublet.core.clock import micros
from hublet.core.machine import identify
from hublet.notifications.inbox import service as inbox
from hublet.notifications.records import InboxItem, Involvement
from hublet.runtime.supervisor.records import Locality
from hublet.runtime.supervisor.scheduling import SchedulingContext, claim_jobs

_INBOX = "/api/notifications"
_PER_REPO = 1_000
# One of so many is unread, and one of so many is also in the inboxes of others.
_UNREAD, _SHARED = 50, 10
_OTHERS = 10

_JOBS = "/api/jobs/ada"
_PER_EXPERIMENT = 100
_RUNNING = 5


class Notifications(Topic):
    """Notifications of one user, beside ten others who have a tenth of them each."""

    name = "notifications"
    sizes = (1_000, 10_000, 100_000, 1_000_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        numbers, ids = range(before, size), ids_from(before, size - before)
        repos = ids_from(0, -(-size // _PER_REPO))
        new = list(enumerate(repos))[-(-before // _PER_REPO) :]
        await self.app.add_copies(
            "repos",
            self._repo,
            (
                {"id": each, "name": name, "name_key": name}
                for number, each in new
                for name in [f"engine-{number}"]
            ),
        )
        await self.app.add_copies(
            "threads",
            self._thread,
            (
                {"id": each, "repo_id": repos[number // _PER_REPO], "number": number + 2}
                for number, each in zip(numbers, ids, strict=True)
            ),
        )
        rows = (
            {
                "user_id": user,
                "thread_id": each,
                "place_id": repos[number // _PER_REPO],
                "involvement": {0: 2, 1: 1}.get(number % 40, 0),
                "read": number % _UNREAD != 0,
                "updated_at": int(each[:8], 16) * 1_000_000,
            }
            for number, each in zip(numbers, ids, strict=True)
            for user in (self.app.user.id, *(self._others if number % _SHARED == 0 else ()))
        )
        await self.app.add_copies("notifications", self._item, rows)
        await self._count()
        self._first = ids[0]

    async def _begin(self) -> None:
        await self.app.ask("POST", "/api/repos/create", {"name": "engine"})
        path = "/api/models/ada/engine/discussions"
        await self.app.ask("POST", path, {"title": "Does it run?", "description": "Please."})
        self._repo = await self.app.row_of("repos", name="engine")
        self._thread = await self.app.row_of("threads", repo_id=self._repo["id"])
        self._others = await add_users(self.app.database, "reader", _OTHERS)
        # What comes in is put where the hub would put it.
        for each in (self.app.user.id, *self._others):
            await self._deliver(each)
        self._item = await self.app.row_of("notifications", user_id=self.app.user.id)

    async def _count(self) -> None:
        await self.app.run("DELETE FROM notification_counts")
        for facet in ("type", "place_id"):
            await self.app.run(
                f"""
                INSERT INTO notification_counts (user_id, facet, involvement, total, unread)
                SELECT user_id, {facet}, involvement, count(*),
                    sum(CASE WHEN read THEN 0 ELSE 1 END)
                FROM notifications WHERE {facet} IS NOT NULL
                GROUP BY user_id, {facet}, involvement
                """
            )

    def operations(self) -> Mapping[str, Operation]:
        return {
            "first page": self.getting(_INBOX),
            "page of the unread": self.getting(f"{_INBOX}?readStatus=unread"),
            "counts": self.getting(f"{_INBOX}?p=1000000"),
            "one is marked as read": Operation(run=lambda: self._mark(read=True), after=self._undo),
            "a new one": Operation(run=lambda: self._deliver(self.app.user.id)),
        }

    async def _mark(self, *, read: bool) -> None:
        body = {"discussionIds": [self._first], "read": read}
        await self.app.ask("POST", f"{_INBOX}/mark-as-read", body)

    async def _undo(self) -> None:
        await self._mark(read=False)

    async def _deliver(self, user_id: str) -> None:
        item = InboxItem(
            thread_id=str(self._thread["id"]),
            type="model",
            place_id=str(self._repo["id"]),
            event_id=None,
        )
        async with self.app.database.transaction() as conn:
            await inbox.deliver(conn, item, {user_id: Involvement.watched})


class Jobs(Topic):
    """Jobs of one owner that are over, each with the label of its experiment; five run."""

    name = "jobs in history"
    sizes = (1_000, 10_000, 100_000, 1_000_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        numbers, ids = range(before, size), ids_from(before, size - before)
        pairs = list(zip(numbers, ids, strict=True))
        await self.app.add_copies("jobs", self._rows["jobs"], (_job(*each) for each in pairs))
        labels = (
            {"job_id": each, "value": str(number // _PER_EXPERIMENT)} for number, each in pairs
        )
        await self.app.add_copies("job_labels", self._rows["job_labels"], labels)
        await self.app.add_copies(
            "job_attempts", self._rows["job_attempts"], ({"job_id": each} for each in ids)
        )
        await self.app.add_copies(
            "job_events", self._rows["job_events"], ({"id": each, "job_id": each} for each in ids)
        )
        self._middle = ids_from(size // 2, 1)[0]

    async def _begin(self) -> None:
        for _ in range(_RUNNING):
            job_id = await self._create()
            await self._claim()
            await self.app.run("UPDATE jobs SET stage = 'RUNNING' WHERE id = $1", job_id)
        await self.app.run("UPDATE jobs SET due_at = NULL, claimed_by = NULL")
        key = {"job_id": job_id}
        tables = ("job_labels", "job_attempts", "job_events")
        self._rows = {each: await self.app.row_of(each, **key) for each in tables}
        self._rows["jobs"] = await self.app.row_of("jobs", id=job_id)
        now = micros()
        self._rows["jobs"] |= {"stage": "COMPLETED", "started_at": now, "finished_at": now}
        self._rows["job_attempts"] |= {"ended_at": now, "removed_at": now, "handle": "x"}

    def operations(self) -> Mapping[str, Operation]:
        return {
            "first page": self.getting(f"{_JOBS}?limit=20"),
            "page in the middle": self.getting(f"{_JOBS}?limit=20&{cursor_at(self._middle)}"),
            "those that run": self.getting(f"{_JOBS}?limit=20&stage=RUNNING"),
            "those of a label": self.getting(f"{_JOBS}?limit=20&label=experiment%3D3"),
            "count of those that run": self.getting(f"{_JOBS}/count?stage=RUNNING"),
            "count of all": self.getting(f"{_JOBS}/count"),
            "a new job": Operation(run=self._create, after=self._end),
            "a job is claimed": Operation(before=self._create, run=self._claim, after=self._end),
        }

    async def _create(self) -> str:
        body = {
            "dockerImage": "any",
            "flavor": "cpu-basic",
            "command": ["true"],
            "labels": {"experiment": "new"},
        }
        self._last: str = (await self.app.ask("POST", _JOBS, body)).json["id"]
        return self._last

    async def _claim(self) -> None:
        settings = self.app.database.hub.settings
        machine = await asyncio.to_thread(identify, settings)
        context = SchedulingContext(
            settings=settings,
            locality=Locality(machine=machine, lost_before=0),
            is_local=True,
            is_usable=True,
        )
        async with self.app.database.transaction() as conn:
            claimed, _ = await claim_jobs(
                conn, context, worker="bench", runner="process", lease=10**9
            )
        if claimed != [self._last]:
            raise Spoiled(f"{claimed} were claimed.")

    async def _end(self) -> None:
        sql = "UPDATE jobs SET stage = 'COMPLETED', due_at = NULL, claimed_by = NULL WHERE id = $1"
        await self.app.run(sql, self._last)
        sql = "UPDATE job_attempts SET removed_at = 1 WHERE job_id = $1"
        await self.app.run(sql, self._last)


def _job(number: int, job_id: str) -> Mapping[str, object]:
    at = int(job_id[:8], 16) * 1_000_000
    stages = {7: "ERROR", 8: "CANCELED"}
    return {
        "id": job_id,
        "created_at": at,
        "stage": stages.get(number % 100, "COMPLETED"),
        "labels": json.dumps({"experiment": str(number // _PER_EXPERIMENT)}),
    }
