"""Pages of the hub in a browser: server time with everything warm, and the bytes of a first visit."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.content import OWNER, Account, commit_body
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import a_token, opened, serving
from benchmarks.latencies import merged, percentile
from benchmarks.processes import fetch
from benchmarks.rounds import LoadTarget, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.accounts.users import service as accounts
from hublet.cli.local_hub import run_loop
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.jobs import service as jobs
from hublet.jobs.access import get_access_of_creator, get_creator
from hublet.jobs.logs.reader import log_path
from hublet.jobs.records import Initiator, InitiatorType
from hublet.jobs.requests import REQUEST_ADAPTER
from hublet.login import sessions
from hublet.login.browser import SESSION_COOKIE
from hublet.login.records import Visitor
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

_SERVER_TIME = Goal(aim=25, more_is_better=False, of="ours")
_FIRST_VISIT = Goal(aim=100, more_is_better=False, of="ours")
_REPO = "engine"
_OTHER_REPO = "numbers"
_PAGE = f"/{OWNER}/{_REPO}"
_THREAD = f"{_PAGE}/discussions/1"
_COMMENTS = 20
_INBOX = "/notifications"
# As many as the first page of an inbox shows.
_UNREAD = 25
_TITLE = re.compile(rb"Is \d+ a prime")
_JOB = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}
_LINES = 2_000
_LONGEST_SECONDS = 60.0
_BROWSER = {"accept": "text/html", "accept-encoding": "gzip"}
_KILOBYTE = 1000
_STATIC = re.compile(rb'(?:href|src)="(/static/[^"#]+)')

# A usual card: 12 kB with tables and code.
_SECTION = """
## Results of run {number}

| Task | Engine 7B | Engine 1B | Baseline |
|---|--:|--:|--:|
| GSM8K (8-shot) | 61.4 | 38.0 | 54.2 |
| MATH (4-shot) | 24.9 | 11.3 | 21.7 |

It counts to about ten thousand before it becomes unsure, and says so less often than it should.
Do **not** use it where a wrong number hurts somebody. See [train.py](src/train.py).

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("ada/engine")
print(tokenizer("What is 17 x 23?"))  # 391
```

- [x] arithmetic
- [ ] poetry
"""
_CARD = """---
library_name: transformers
pipeline_tag: text-generation
language: [en, de]
license: apache-2.0
datasets: [ada/numbers]
---
# Engine 7B
""" + "".join(_SECTION.format(number=number) for number in range(18))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Ada, who looks at the pages, her job, and the token of somebody who writes to her."""

    token: str
    cookie: str
    job_id: str
    other_token: str


def measure(bench: Workbench) -> Iterator[Row]:
    """Pages of a repository, a thread, a job and an inbox: p50, p99, processor time; a first visit."""
    site = bench.site("SQLite")
    settings = site.settings()
    reader = run_loop(_populate(settings))
    _print_log(settings, reader.job_id)
    signed_in = _BROWSER | {"cookie": f"{SESSION_COOKIE}={reader.cookie}"}
    with serving(site, core=bench.cores.server) as hub:
        _fill(Account(hub=hub, token=reader.token), Account(hub=hub, token=reader.other_token))
        readers = {"signed in": signed_in, "not signed in": _BROWSER}
        asked = {f"repository page, {name}": (_PAGE, headers) for name, headers in readers.items()}
        asked["thread page, signed in"] = (_THREAD, signed_in)
        asked["job page, signed in"] = (f"/jobs/{OWNER}/{reader.job_id}", signed_in)
        asked["inbox page, signed in"] = (_INBOX, signed_in)
        _wait_for_inbox(hub.port, signed_in)
        for path, headers in asked.values():
            _open(hub.port, headers, path)
        targets = [
            LoadTarget(
                name=name,
                process_id=hub.child.id,
                port=hub.port,
                request=request_bytes("GET", path, headers=headers),
            )
            for name, (path, headers) in asked.items()
        ]
        rounds = alternate(
            targets,
            connections=1,
            seconds=bench.seconds,
            rounds=bench.rounds,
            core=bench.cores.load,
        )
        for name, taken in rounds.items():
            latencies = merged(each.latencies for each in taken)
            for share, word in ((0.5, "p50"), (0.99, "p99")):
                yield Row(
                    subject=f"{name}, {word}",
                    unit="ms",
                    ours=percentile(latencies, share),
                    goal=_SERVER_TIME,
                )
            yield Row(
                subject=f"{name}, processor time",
                unit="ms",
                ours=sum(each.cpu_micros for each in taken) / len(taken) / 1000,
                goal=_SERVER_TIME,
            )
        yield _first_visit(hub.port, signed_in)


async def _populate(settings: Settings) -> _Reader:
    async with opened(settings) as database:
        token = await a_token(database)
        async with database.transaction() as conn:
            ada = await accounts.get_user(conn, OWNER)
            visitor = Visitor(address="127.0.0.1", agent="benchmarks")
            _, cookie = await sessions.begin(conn, ada, visitor)
            grace = await accounts.create_user(conn, "grace")
            _, other_token = await tokens.issue(
                conn, user_id=grace.id, name="benchmarks", role=TokenRole.write
            )
            job_id = await _create_job(conn, ada.id)
    return _Reader(token=token, cookie=cookie, job_id=job_id, other_token=other_token)


async def _create_job(conn: Connection, user_id: str) -> str:
    """Create a job that runs, as far as pages know: no worker claims it."""
    job = await jobs.create(
        conn,
        access=await get_access_of_creator(conn, await get_creator(conn, user_id), user_id),
        initiator=Initiator(type=InitiatorType.user, id=user_id),
        request=REQUEST_ADAPTER.validate_python(_JOB),
    )
    await conn.execute("UPDATE jobs SET stage = 'RUNNING', due_at = NULL")
    return job.id


def _print_log(settings: Settings, job_id: str) -> None:
    log, stamp = log_path(settings.database.data_dir, job_id), micros()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"{stamp} step={n} loss=0.6521 lr=2.71e-04\n" for n in range(_LINES)))


def _fill(account: Account, other: Account) -> None:
    account.create_repo(_REPO)
    files = {f"src/part-{number:02}.py": b"import torch\n" for number in range(60)}
    account.commit(_REPO, commit_body({"README.md": _CARD.encode(), **files}))
    path = f"/api/models/{OWNER}/{_REPO}/discussions"
    for number in range(8):
        body = {"title": f"Does it run on {number} cards?", "description": "Please."}
        account.send("POST", path, json.dumps(body).encode())
    for number in range(_COMMENTS):
        body = {"comment": f"It does on **{number}** of them, see `src/part-{number:02}.py`."}
        account.send("POST", f"{path}/1/comment", json.dumps(body).encode())
    account.create_repo(_OTHER_REPO)
    for number in range(_UNREAD):
        body = {"title": f"Is {number} a prime?", "description": "Please."}
        other.send(
            "POST", f"/api/models/{OWNER}/{_OTHER_REPO}/discussions", json.dumps(body).encode()
        )


def _wait_for_inbox(port: int, headers: dict[str, str]) -> None:
    """Wait until the worker has put everything into the inbox."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    plain = headers | {"accept-encoding": "identity"}
    while len(set(_TITLE.findall(_open(port, plain, _INBOX)))) < _UNREAD:
        if time.monotonic() > deadline:
            raise Spoiled("The inbox is not full.")
        time.sleep(0.05)


def _open(port: int, headers: dict[str, str], path: str = _PAGE) -> bytes:
    status, body = fetch(port, path, headers)
    if status != 200:
        raise Spoiled(f"{path} answered {status}.")
    return body


def _first_visit(port: int, headers: dict[str, str]) -> Row:
    """Add up what a browser loads, compressed, when it has nothing yet."""
    whole = _open(port, headers | {"accept-encoding": "identity"})
    parts = sorted({path.decode() for path in _STATIC.findall(whole)})
    sizes = [len(fetch(port, path, headers)[1]) for path in (_PAGE, *parts)]
    return Row(
        subject="repository page, first visit",
        unit="kB",
        ours=sum(sizes) / _KILOBYTE,
        goal=_FIRST_VISIT,
        note=f"the page and {', '.join(path.partition('?')[0] for path in parts)}",
    )
