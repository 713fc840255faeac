"""Pages of the hub in a browser: server time with everything warm, and the bytes of a first visit."""

import json
import re
from collections.abc import Iterator

from benchmarks.content import OWNER, Account, commit_body
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import a_token, opened, serving
from benchmarks.latencies import merged, percentile
from benchmarks.processes import fetch
from benchmarks.rounds import LoadTarget, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.accounts.users import service as accounts
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.login import sessions
from hublet.login.browser import SESSION_COOKIE
from hublet.login.records import Visitor

_SERVER_TIME = Goal(aim=25, more_is_better=False, of="ours")
_FIRST_VISIT = Goal(aim=100, more_is_better=False, of="ours")
_REPO = "engine"
_PAGE = f"/{OWNER}/{_REPO}"
_THREAD = f"{_PAGE}/discussions/1"
_COMMENTS = 20
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


def measure(bench: Workbench) -> Iterator[Row]:
    """Repository and thread page: p50 and p99 of server time, processor time; a first visit."""
    site = bench.site("SQLite")
    token, cookie = run_loop(_populate(site.settings()))
    signed_in = _BROWSER | {"cookie": f"{SESSION_COOKIE}={cookie}"}
    with serving(site, core=bench.cores.server) as hub:
        account = Account(hub=hub, token=token)
        _fill(account)
        readers = {"signed in": signed_in, "not signed in": _BROWSER}
        asked = {f"repository page, {name}": (_PAGE, headers) for name, headers in readers.items()}
        asked["thread page, signed in"] = (_THREAD, signed_in)
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


async def _populate(settings: Settings) -> tuple[str, str]:
    """Return a token of ada's, and the cookie of her browser."""
    async with opened(settings) as database:
        token = await a_token(database)
        async with database.transaction() as conn:
            ada = await accounts.get_user(conn, OWNER)
            visitor = Visitor(address="127.0.0.1", agent="benchmarks")
            _, cookie = await sessions.begin(conn, ada, visitor)
    return token, cookie


def _fill(account: Account) -> None:
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
