"""All pages of the hub: one table, and one seeded hub to open them on.

Whoever builds a page adds its line to `PAGES`; every proof over all pages then covers it.
"""

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx2

from hublet.core.clock import micros
from hublet.jobs.logs.reader import log_path
from hublet.jobs.metrics import PERIOD_SECONDS, UsageLimits, append_sample, history_path
from hublet.jobs.records import Usage
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until
from registry.stored_images import a_config, a_manifest, an_index, digest_of
from repos.commits import file, header, ndjson

PASSWORD = "correct horse battery"
_CALLBACK = "https://loom.example/callback"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCase:
    """One page: `path` may name values of the seeded hub in braces."""

    name: str
    path: str
    # Who looks at it; None is somebody who is not signed in.
    who: str | None = "ada"
    status: int = 200


def _page(name: str, path: str, *, who: str | None = "ada", status: int = 200) -> PageCase:
    return PageCase(name=name, path=path, who=who, status=status)


PAGES = (
    # Who is not signed in.
    _page("start page, signed out", "/", who=None),
    _page("login", "/login", who=None),
    _page("sign-up, closed", "/join", who=None, status=403),
    _page("forgotten password", "/forgot-password", who=None),
    _page("new password", "/reset-password/{reset}", who=None),
    _page("new password, link used", "/reset-password/nothing", who=None, status=404),
    _page("invitation", "/invitations/{invitation}", who=None),
    _page("API reference", "/docs", who=None),
    _page("model, signed out", "/ada/engine-7b", who=None),
    _page("thread, signed out", "/ada/engine-7b/discussions/{question}", who=None),
    _page("nothing here, signed out", "/ada/nothing", who=None, status=404),
    # The site.
    _page("start page", "/"),
    _page("models", "/models"),
    _page("models, filtered", "/models?filter=arithmetic&sort=likes"),
    _page("datasets", "/datasets"),
    _page("spaces", "/spaces"),
    _page("kernels", "/kernels"),
    _page("containers", "/containers"),
    _page("no models of this name", "/models?search=nothing"),
    _page("search", "/search?q=engine"),
    _page("search without result", "/search?q=zzzzqqqq"),
    _page("full text", "/search/full-text?q=engine"),
    _page("full text without result", "/search/full-text?q=zzzzqqqq&type=paper"),
    _page("person", "/ada"),
    _page("another person", "/charles"),
    _page("organization", "/analytical"),
    _page("followers", "/ada/followers"),
    _page("following", "/charles/following"),
    _page("members", "/organizations/analytical/members"),
    _page("papers", "/papers"),
    _page("paper", "/papers/{paper}"),
    _page("new paper", "/papers/new"),
    _page("posts", "/posts"),
    _page("post", "/posts/ada/{post}"),
    _page("new post", "/posts/new"),
    _page("collections", "/collections"),
    _page("collection", "/collections/{collection}"),
    _page("collection, signed out", "/collections/{collection}", who=None),
    _page("new collection", "/collections/new"),
    _page("collections of a repository", "/ada/engine-7b/collections"),
    _page("blogs", "/blog"),
    _page("blog", "/blog/ada/{blog}"),
    _page("new blog", "/blog/new"),
    _page("blog, edited", "/blog/ada/{blog}/edit"),
    # Repositories.
    _page("model", "/ada/engine-7b"),
    _page("dataset", "/datasets/ada/numbers"),
    _page("space", "/spaces/ada/calculator"),
    _page("kernel", "/kernels/ada/multiply"),
    _page("bucket", "/buckets/ada/box"),
    _page("folder of a bucket", "/buckets/ada/box/tree/data"),
    _page("file of a bucket", "/buckets/ada/box/tree/data/notes.txt"),
    _page("container", "/containers/ada/loom"),
    _page("tag of a container", "/containers/ada/loom/tags/1.0"),
    _page("platforms of a tag", "/containers/ada/loom/tags/latest"),
    _page("deletion of a tag", "/containers/ada/loom/delete-tag/1.0"),
    _page("retention of images", "/containers/ada/loom/settings/retention"),
    _page("settings of a container", "/containers/ada/loom/settings"),
    _page("files of a container", "/containers/ada/loom/tree"),
    _page("empty container", "/containers/ada/spindle"),
    _page("empty model", "/ada/empty"),
    _page("empty model, a reader", "/ada/empty", who="charles"),
    _page("upload to a bucket", "/buckets/ada/box/upload/data"),
    _page("deletion in a bucket", "/buckets/ada/box/delete/data/notes.txt"),
    _page("empty bucket", "/buckets/ada/empty-box"),
    _page("gated model, a reader", "/ada/gated", who="charles"),
    _page("gated files, a reader", "/ada/gated/tree/main", who="charles"),
    _page("viewer", "/datasets/ada/numbers/viewer?statistics=true"),
    _page("viewer, no rows", "/datasets/ada/notes/viewer"),
    _page("SQL console", "/datasets/ada/numbers/sql-console"),
    _page("SQL console, signed out", "/datasets/ada/numbers/sql-console", who=None),
    _page("saved query", "/datasets/ada/numbers/sql-console/{query}"),
    _page("new model", "/new"),
    _page("new dataset", "/new-dataset"),
    _page("settings of a model", "/ada/engine-7b/settings"),
    _page("settings of a gated model", "/ada/gated/settings"),
    _page("webhooks of a model", "/ada/engine-7b/settings/webhooks"),
    _page("trusted publishers", "/ada/engine-7b/settings/trusted-publishers"),
    _page("publishers, none", "/ada/empty/settings/trusted-publishers?provider=gitlab"),
    _page("requests for access", "/ada/gated/settings/access-requests"),
    # Files.
    _page("files", "/ada/engine-7b/tree/main"),
    _page("folder", "/ada/engine-7b/tree/main/src"),
    _page("code", "/ada/engine-7b/blob/main/src/train.py"),
    _page("code, marked line", "/ada/engine-7b/blob/main/src/train.py?code=true#L3"),
    _page("Markdown", "/ada/engine-7b/blob/main/README.md"),
    _page("Markdown as code", "/ada/engine-7b/blob/main/README.md?code=true"),
    _page("picture", "/ada/engine-7b/blob/main/plot.png"),
    _page("table", "/ada/engine-7b/blob/main/results.csv"),
    _page("notebook", "/ada/engine-7b/blob/main/tour.ipynb"),
    _page("tensors", "/ada/engine-7b/blob/main/model.safetensors"),
    _page("bytes", "/ada/engine-7b/blob/main/weights.bin"),
    _page("blame", "/ada/engine-7b/blame/main/src/train.py"),
    _page("commits", "/ada/engine-7b/commits/main"),
    _page("commits of a file", "/ada/engine-7b/commits/main/config.json"),
    _page("commit", "/ada/engine-7b/commit/{commit}"),
    _page("compare", "/ada/engine-7b/compare/{first_commit}...main"),
    _page("branches and tags", "/ada/engine-7b/branches"),
    _page("editor", "/ada/engine-7b/edit/main/src/train.py"),
    _page("editor, a reader", "/ada/engine-7b/edit/main/README.md", who="charles"),
    _page("editor of what is no text", "/ada/engine-7b/edit/main/weights.bin"),
    _page("new file", "/ada/engine-7b/new/main/src"),
    _page("upload", "/ada/engine-7b/upload/main"),
    _page("deletion", "/ada/engine-7b/delete/main/results.csv"),
    # Threads.
    _page("threads", "/ada/engine-7b/discussions"),
    _page("threads, none", "/datasets/ada/numbers/discussions"),
    _page("new thread", "/ada/engine-7b/discussions/new"),
    _page("thread", "/ada/engine-7b/discussions/{question}"),
    _page("pull request with conflict", "/ada/engine-7b/discussions/{conflict}"),
    _page("its commits", "/ada/engine-7b/discussions/{conflict}/commits"),
    _page("its files", "/ada/engine-7b/discussions/{conflict}/files"),
    _page("editor of conflicts", "/ada/engine-7b/discussions/{conflict}/conflicts"),
    _page("pull request", "/ada/engine-7b/discussions/{ready}"),
    _page("merged pull request", "/ada/engine-7b/discussions/{merged}"),
    # Jobs.
    _page("jobs", "/jobs/ada"),
    _page("jobs, filtered", "/jobs/ada?stage=ERROR&label=team%3Dlooms"),
    _page("jobs, none of these", "/jobs/ada?stage=DELETED"),
    _page("jobs, none", "/jobs/charles", who="charles"),
    _page("jobs of an organization", "/jobs/analytical"),
    _page("new job", "/jobs/ada/new"),
    _page("job, run again changed", "/jobs/ada/new?from={listed_job}"),
    _page("labels of a job", "/jobs/ada/{listed_job}/labels"),
    _page("schedules", "/jobs/ada/scheduled"),
    _page("schedules, none", "/jobs/charles/scheduled", who="charles"),
    _page("schedule", "/jobs/ada/scheduled/{schedule}"),
    # One job.
    _page("job", "/jobs/ada/{job}"),
    _page("job, search in its log", "/jobs/ada/{job}?q=loss%3D0.9"),
    _page("job, range of its log", "/jobs/ada/{job}?from=100&lines=100#L120"),
    # Webhooks.
    _page("webhooks", "/settings/webhooks"),
    _page("webhooks, none", "/settings/webhooks", who="charles"),
    _page("webhooks of an organization", "/organizations/analytical/settings/webhooks"),
    _page("webhook", "/settings/webhooks/{webhook}"),
    _page("webhook, nothing matches", "/settings/webhooks/{webhook}?state=unsent&repo=ada/nothing"),
    _page("payloads and receivers", "/settings/webhooks/{webhook}/samples"),
    _page("delivery", "/settings/webhooks/{webhook}/deliveries/{delivery}"),
    _page("new webhook", "/settings/webhooks/new"),
    _page("webhook, edited", "/settings/webhooks/{webhook}/edit"),
    # The inbox.
    _page("inbox", "/notifications"),
    _page("inbox, everything by time", "/notifications?readStatus=all&group=none"),
    _page("inbox, nothing matches", "/notifications?q=zzzzqqqq"),
    _page("inbox, nothing unread", "/notifications?mention=mentions", who="charles"),
    _page("message of the hub", "/notifications/messages/{message}"),
    _page("settings of notifications", "/settings/notifications"),
    _page("watched", "/settings/notifications/watched"),
    _page("muted", "/settings/notifications/muted"),
    # Settings, and what apps ask.
    _page("profile", "/settings/profile"),
    _page("account", "/settings/account"),
    _page("tokens", "/settings/tokens"),
    _page("no tokens", "/settings/tokens", who="charles"),
    _page("new token", "/settings/tokens/new?name=ci&scopes=jobs&owner=analytical"),
    _page("SSH keys", "/settings/keys"),
    _page("MCP", "/settings/mcp"),
    _page("invitation, signed in", "/invitations/{invitation}", who="charles"),
    _page("sessions", "/settings/sessions"),
    _page("password", "/settings/password"),
    _page("passkeys", "/settings/passkeys"),
    _page("applications", "/settings/applications"),
    _page("application", "/settings/applications/{app}"),
    _page("new application", "/settings/applications/new"),
    _page("connected applications", "/settings/connected-applications"),
    _page("sign in again", "/login?again=true"),
    _page("sign out", "/logout"),
    _page("consent", "/oauth/authorize?{authorization}"),
    _page("consent, refused", "/oauth/authorize?client_id=nobody", status=400),
    _page("device", "/device"),
    _page("device, decision", "/device?user_code={user_code}"),
    # Administration.
    _page("administration", "/admin", who="root"),
    _page("administration of users", "/admin/users", who="root"),
    _page("administration of organizations", "/admin/organizations", who="root"),
    _page("administration of the storage", "/admin/storage", who="root"),
    _page("storage of an owner", "/admin/storage?owner=ada", who="root"),
    _page("administration of tasks", "/admin/tasks", who="root"),
    _page("activity of administrators", "/admin/activity", who="root"),
    _page("sign-ins", "/admin/activity?kind=sign-ins", who="root"),
    _page("switches", "/admin/switches", who="root"),
    _page("administration, not for you", "/admin", status=403),
    # An organization.
    _page("new organization", "/organizations/new"),
    _page("profile of an organization", "/organizations/analytical/settings/profile"),
    _page("members of an organization", "/organizations/analytical/settings/members"),
    _page("resource groups", "/organizations/analytical/settings/resource-groups"),
    _page("resource group", "/organizations/analytical/settings/resource-groups/{group}"),
    _page("service accounts", "/organizations/analytical/settings/service-accounts"),
    _page("service account", "/organizations/analytical/settings/service-accounts/{account}"),
    _page("tokens of an organization", "/organizations/analytical/settings/tokens"),
    _page("networks of an organization", "/organizations/analytical/settings/network-security"),
    _page("applications of an organization", "/organizations/analytical/settings/oauth"),
    _page("audit log", "/organizations/analytical/settings/audit-log"),
    _page("audit log, nothing found", "/organizations/analytical/settings/audit-log?actor=nobody"),
    _page("SCIM", "/organizations/analytical/settings/scim"),
    _page("usage of an organization", "/organizations/analytical/settings/usage"),
    _page("request to join", "/organizations/analytical/join", who="grace"),
    _page("no service accounts", "/organizations/loom-works/settings/service-accounts"),
    # What went wrong.
    _page("nothing here", "/ada/nothing", status=404),
    _page("not for you", "/ada/engine-7b/settings", who="charles", status=403),
    _page("that went wrong", "/ada/broken/tree/main", status=500),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededHub:
    """A hub with something on every page of the table."""

    address: str
    # What the paths of the table name in braces.
    values: Mapping[str, str]
    # The cookies of each person's session.
    cookies: Mapping[str | None, Mapping[str, str]]

    def url_of(self, page: PageCase) -> str:
        return self.address + page.path.format_map(self.values)


@contextmanager
def seeded_hub(place: Place) -> Iterator[SeededHub]:
    with serving(place, variables={"HUBLET_OUTGOING_ALLOW": "127.0.0.1/32"}) as server:
        names = ("ada", "charles", "grace", "root")
        clients = {name: _person(server, place, name) for name in names}
        _organization(server)
        values = {
            **_repositories(clients["ada"], clients["charles"]),
            **_publications(clients["ada"], clients["charles"]),
            **_apps(server, clients["ada"]),
            **_account(server, place, clients["ada"]),
            **_listed_jobs(clients["ada"]),
            "job": _job(place, clients["ada"]),
            **_webhooks(clients["ada"]),
            **_inbox(clients["ada"]),
            **_organization_settings(server, clients["ada"]),
        }
        _break_folders(place, values["broken"])
        _administration(server, place)
        cookies = {name: sign_in(server, name, PASSWORD) for name in clients}
        yield SeededHub(address=server.address, values=values, cookies={None: {}, **cookies})


def _person(server: Server, place: Place, name: str) -> httpx2.Client:
    """Add a person with a password; return their client of the API."""
    with server.client(server.token) as administrator:
        _answer(administrator.post("/api/admin/users", json={"name": name, "password": PASSWORD}))
    token = "hf_" + name[0] * 34
    made = run_hublet("token", "create", name, "--value", token, *place.flags, folder=place.folder)
    assert made.returncode == 0, made.stderr
    return server.client(token)


def sign_in(server: Server, name: str, password: str) -> dict[str, str]:
    """Return the cookies of a new session."""
    with server.client() as browser:
        _answer(
            browser.post(
                "/login",
                data={"name": name, "password": password},
                headers={"Origin": server.address},
            )
        )
        return dict(browser.cookies)


def _organization(server: Server) -> None:
    with server.client(server.token) as administrator:
        body = {"name": "analytical", "fullname": "Analytical Engines"}
        _answer(administrator.post("/api/admin/organizations", json=body))
        for name, role in (("ada", "admin"), ("charles", "write")):
            path = f"/api/admin/organizations/analytical/members/{name}"
            _answer(administrator.put(path, json={"role": role}))


def _administration(server: Server, place: Place) -> None:
    """Make root an administrator, with a parked task and a day of metrics to look at."""
    with server.client(server.token) as administrator:
        _answer(administrator.patch("/api/admin/users/root", json={"isAdmin": True}))
    minute = 60_000_000
    now = int(datetime.now(UTC).timestamp() * 1e6) // minute * minute
    with closing(sqlite3.connect(place.data_dir / "hub.db", timeout=60)) as database, database:
        database.execute(
            "INSERT INTO tasks VALUES (?, 'mail.send', 0, '{}', ?, ?, 12, NULL, ?, ?, NULL)",
            ("0" * 24, now, now, "MailUnavailable: the server does not answer", now),
        )
        for age in range(1, 24 * 60, 5):
            counts = [0, *[age % 40 for _ in range(4)], *[1] * 4, *[0] * 4]
            sample = {"requests": sum(counts), "errors": age % 7 // 6, "latencies": counts}
            sample |= {"delivered": age % 9, "failed": age % 5 // 4, "tasks_waiting": age % 13}
            sample |= {"jobs_running": age % 3, "database_bytes": 9_000_000 - age * 1000}
            database.execute(
                "INSERT INTO metric_samples VALUES ('seed', ?, ?)",
                (now - age * minute, json.dumps(sample)),
            )


def _job(place: Place, ada: httpx2.Client) -> str:
    """Return a job that waits, with the log and the usage of one that ran for ten minutes."""
    body = {
        "dockerImage": "ubuntu",
        "command": ["sleep", "0"],
        "flavor": "cpu-basic",
        "labels": {"name": "train-engine", "team": "engines"},
        "environment": {"RATE": "3e-4"},
        "secrets": {"TOKEN": "not for pages"},
        "expose": {"ports": [6006]},
    }
    job_id = str(_answer(ada.post("/api/jobs/ada", json=body))["id"])
    start, limits = micros() - 600 * 1_000_000, UsageLimits(cpu_millicores=2000, memory_bytes=2**34)
    log = log_path(place.data_dir, job_id)
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"\x1b[32mINFO\x1b[0m  step={n} loss={1 - n / 5000:.4f} \x1b[90mtokens/s=12319\x1b[0m"
        for n in range(1, 1600)
    ]
    lines[-1] = "\x1b[1;31mERROR\x1b[0m upload.py:52 503 from the hub, trying again in 2 s"
    log.write_text("".join(f"{start + n * 370_000} {line}\n" for n, line in enumerate(lines)))
    for number in range(120):
        usage = Usage(
            cpu_millicores=1200 + 40 * (number % 17),
            memory_bytes=2**27 * (number + 3),
            disk_per_second=10**6 * (number % 9),
            received_per_second=5000 * (number % 31),
            sent_per_second=900 * (number % 13),
            gpu_percent=94 - number % 5,
        )
        moment = start + number * PERIOD_SECONDS * 1_000_000
        append_sample(history_path(place.data_dir, job_id), usage, limits, at=moment)
    return job_id


def _break_folders(place: Place, repo_id: str) -> None:
    """Spoil what a disk could: the commits of a repository are there, its folders are not."""
    for each in place.data_dir.glob(f"repos/*/{repo_id}.git/objects/??/*"):
        if zlib.decompress(each.read_bytes()).startswith(b"tree "):
            each.chmod(0o600)
            each.write_bytes(b"spoiled")


def _answer(response: httpx2.Response) -> Any:
    assert response.status_code < 400, (str(response.url), response.text)
    return response.json() if "json" in response.headers.get("content-type", "") else None


# ---------------------------------------------------------------- what lies in it


_README = """---
language: [en, de]
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
datasets: [ada/numbers]
tags: [arithmetic]
---
# Engine 7B

![Loss over steps](plot.png)

Engine is a small language model that does **arithmetic** carefully. It was trained on
[ada/numbers](/datasets/ada/numbers), four epochs, on one machine. See [train.py](src/train.py).

## Results

| Task | Engine 7B | Baseline |
|---|--:|--:|
| GSM8K (8-shot) | 61.4 | 54.2 |
| MATH (4-shot) | 24.9 | 21.7 |

> [!WARNING]
> Do not use it where a wrong number hurts somebody.

- [x] counts
- [ ] proves, as in $e^{i\\pi} + 1 = 0$

```python
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("ada/engine-7b")
print(tokenizer.decode([1, 2]))  # 391
```
"""
_TRAIN = '''"""Train the engine."""

import torch
from torch.nn import functional


def train(model: torch.nn.Module, batches: list[torch.Tensor], rate: float = 3e-4) -> float:
    """Return the last loss, after one step for each batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    loss = torch.tensor(0.0)
    for step, batch in enumerate(batches):
        # The labels are the inputs, one further.
        loss = functional.cross_entropy(model(batch[:-1]), batch[1:])
        loss.backward()
        optimizer.step()
        print(f"step={step} loss={loss.item():.4f}")
    return loss.item()
'''
_GATED = """---
extra_gated_prompt: Say who you are.
extra_gated_fields:
  Company: text
  Country: country
  Use: {type: select, options: [Research, Teaching]}
  I agree to the terms: checkbox
---
# Gated engine
"""


def _picture() -> bytes:
    """Return a PNG of 320 by 160 pixels: a falling curve."""

    def row(y: int) -> bytes:
        curve = [150 - int(130 / (1 + x / 40)) for x in range(320)]
        return b"\0" + bytes(40 if abs(160 - y - curve[x]) < 3 else 240 for x in range(320))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    size = struct.pack(">IIBBBBB", 320, 160, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(map(row, range(160))))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def _tensors() -> bytes:
    names = ("embed.weight", "layer.0.attention.weight", "layer.0.mlp.weight", "head.weight")
    tensors = {
        name: {"dtype": "BF16", "shape": [4, 8], "data_offsets": [64 * i, 64 * (i + 1)]}
        for i, name in enumerate(names)
    }
    head = json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(64 * len(names))


def _notebook() -> str:
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "markdown",
                    "metadata": {},
                    "source": ["# A tour\n", "Add two numbers."],
                },
                {
                    "cell_type": "code",
                    "execution_count": 1,
                    "metadata": {},
                    "source": ["1 + 1"],
                    "outputs": [
                        {
                            "output_type": "execute_result",
                            "execution_count": 1,
                            "metadata": {},
                            "data": {"text/plain": ["2"]},
                        }
                    ],
                },
                {
                    "cell_type": "code",
                    "execution_count": 2,
                    "metadata": {},
                    "source": ["1 / 0"],
                    "outputs": [
                        {
                            "output_type": "error",
                            "ename": "ZeroDivisionError",
                            "evalue": "division by zero",
                            "traceback": ["\x1b[0;31mZeroDivisionError\x1b[0m: division by zero"],
                        }
                    ],
                },
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


_FILES: Mapping[str, bytes | str] = {
    "README.md": _README,
    "config.json": '{\n  "layers": 32,\n  "hidden": 4096,\n  "heads": 32\n}\n',
    "src/train.py": _TRAIN,
    "plot.png": _picture(),
    "results.csv": "task,engine,baseline\nGSM8K,61.4,54.2\nMATH,24.9,21.7\n",
    "tour.ipynb": _notebook(),
    "model.safetensors": _tensors(),
    "weights.bin": bytes(range(256)) * 4,
}


def _create(client: httpx2.Client, name: str, kind: str = "model", **body: object) -> Any:
    whole = {"name": name, "type": kind} | ({"sdk": "static"} if kind == "space" else {}) | body
    return _answer(client.post("/api/repos/create", json=whole))


def _commit(
    client: httpx2.Client,
    repo: str,
    files: Mapping[str, bytes | str],
    summary: str,
    description: str = "",
    **query: str,
) -> Any:
    lines = [header(summary, description=description)]
    lines += [file(path, content) for path, content in files.items()]
    path = f"/api/{repo}/commit/main"
    kind = {"Content-Type": "application/x-ndjson"}
    return _answer(client.post(path, content=ndjson(*lines), params=query, headers=kind))


def _repositories(ada: httpx2.Client, charles: httpx2.Client) -> dict[str, str]:
    _create(ada, "engine-7b")
    first = _commit(ada, "models/ada/engine-7b", _FILES, "Add the engine")
    for name, kind in (("numbers", "dataset"), ("calculator", "space"), ("multiply", "kernel")):
        _create(ada, name, kind)
        words = (
            f"---\nlicense: mit\ntags: [arithmetic]\n---\n# {name.capitalize()}\n\nWhat it is.\n"
        )
        files = {"README.md": words, "data.csv": "a,b\n1,2\n"}
        _commit(ada, f"{kind}s/ada/{name}", files, f"Add {name}")
    query = _saved_query(ada)
    for name, kind in (("box", "bucket"), ("loom", "container"), ("empty-box", "bucket")):
        _create(ada, name, kind)
    _create(ada, "spindle", "container")
    _images(ada)
    _answer(ada.put("/api/buckets/ada/box/files/data/notes.txt", content=b"Some notes.\n"))
    _answer(ada.put("/api/buckets/ada/box/files/curve.png", content=_picture()))
    _create(ada, "empty")
    _create(ada, "gated")
    _commit(ada, "models/ada/gated", {"README.md": _GATED}, "Add the card")
    _answer(ada.put("/api/models/ada/gated/settings", json={"gated": "manual"}))
    _create(ada, "difference", organization="analytical")
    _create(ada, "broken")
    _commit(ada, "models/ada/broken", {"a.txt": "a"}, "Add a file")
    threads = _threads(ada, charles)
    watched = [{"type": "model", "name": "ada/engine-7b"}]
    webhook = {"url": "https://ci.example/hook", "watched": watched, "domains": ["repo"]}
    _answer(ada.post("/api/settings/webhooks", json=webhook))
    publisher = {
        "provider": "github",
        "claims": {"repository": "ada/engine", "workflow": "release.yml", "environment": "release"},
        "pinnedIds": {"repository_id": "22", "repository_owner_id": "11"},
    }
    _answer(ada.post("/api/models/ada/engine-7b/trusted-publishers", json=publisher))
    _answer(ada.post("/api/models/ada/engine-7b/tag/main", json={"tag": "v1"}))
    last = _commit(ada, "models/ada/engine-7b", {"config.json": _config(layers=40)}, "More layers")
    return threads | {
        "broken": _answer(ada.get("/api/models/ada/broken"))["_id"],
        "commit": last["commitOid"],
        "first_commit": first["commitOid"],
        "query": query,
    }


def _saved_query(ada: httpx2.Client) -> str:
    """Put rows into the dataset, make one without any, and save a query; return its slug."""
    words = ("wheel", "cog", "lever")
    lines = [f"{n},{words[n % 3]},{n * n % 97 / 10},{'' if n % 5 else 'yes'}" for n in range(400)]
    rows = "\n".join(["id,part,weight,checked", *lines]) + "\n"
    _commit(ada, "datasets/ada/numbers", {"data.csv": rows}, "More rows")
    _create(ada, "notes", "dataset")
    view = {"key": "default/train", "displayName": "Train", "viewName": "train"}
    sql = "SELECT part, avg(weight) AS weight\nFROM train -- all of them\nGROUP BY part"
    body = {"title": "Weight by part", "sql": sql, "views": [view]}
    path = "/api/datasets/ada/numbers/sql-console/embed"
    return str(_answer(ada.post(path, json=body))["slug"])


def _images(ada: httpx2.Client) -> None:
    """Push an image under a tag, and an index of it under another."""
    config = a_config("ADD rootfs /", "RUN make && make install", Cmd=["weave"], User="ada")
    layers = [b"base" * 4000, b"made" * 900]
    manifest = a_manifest(config, layers)
    index = an_index({"linux/amd64": manifest})
    for blob in (config, *layers):
        query = {"digest": digest_of(blob)}
        sent = ada.post("/v2/ada/loom/blobs/uploads/", params=query, content=blob)
        assert sent.status_code == 201, sent.text
    for tag, content in (("1.0", manifest), ("latest", index)):
        kind = {"Content-Type": json.loads(content)["mediaType"]}
        put = ada.put(f"/v2/ada/loom/manifests/{tag}", content=content, headers=kind)
        assert put.status_code == 201, put.text


def _config(**values: int) -> str:
    return json.dumps({"layers": 32, "hidden": 4096, "heads": 32} | values, indent=2) + "\n"


def _threads(ada: httpx2.Client, charles: httpx2.Client) -> dict[str, str]:
    """Open threads of each kind in ada/engine-7b; return their numbers."""
    repo = "models/ada/engine-7b"
    proposals = {
        "conflict": ({"config.json": _config(layers=48)}, "Pad on the left when batching"),
        "ready": ({"src/decode.py": "PAD = 0\n"}, "Decode in one place"),
        "merged": ({"LICENSE": "Apache-2.0\n"}, "Add the license"),
    }
    numbers = {}
    for name, (files, title) in proposals.items():
        words = "With `padding_side` every batch ends in *pad* tokens.\n\n- see @ada"
        opened = _commit(charles, repo, files, title, words, create_pr="1")
        numbers[name] = opened["pullRequestUrl"].rpartition("/")[2]
    _answer(ada.post(f"/api/{repo}/discussions/{numbers['merged']}/merge", json={}))
    question = {"title": "Does it run on one 24 GB card?", "description": "In `bfloat16`, say."}
    numbers["question"] = str(
        _answer(charles.post(f"/api/{repo}/discussions", json=question))["num"]
    )
    for who, text in ((ada, "It does, with 15 GB."), (charles, "Thank you.\n\n```sh\nmake\n```")):
        path = f"/api/{repo}/discussions/{numbers['question']}/comment"
        _answer(who.post(path, json={"comment": text}))
    return numbers


def _publications(ada: httpx2.Client, charles: httpx2.Client) -> dict[str, str]:
    """Publish a paper, a post and a blog with a comment each; return what names them."""
    notes = {
        "arxivId": "2401.12345",
        "title": "Notes on the Engine",
        "summary": "It weaves algebraic patterns.",
        "authors": ["Ada Lovelace", "Luigi Menabrea"],
    }
    text = {"title": "How the engine weaves", "content": "As the loom does, with **cards**."}
    paper = _answer(ada.post("/api/papers/index", json=notes))["id"]
    post = _answer(ada.post("/api/posts", json=text))["slug"]
    blog = _answer(ada.post("/api/blog", json=text))["slug"]
    for path in (f"papers/{paper}", f"posts/ada/{post}", f"blog/ada/{blog}"):
        _answer(charles.post(f"/api/{path}/comment", json={"comment": "I agree, @ada."}))
    _answer(charles.post("/api/users/ada/follow"))
    wheels = {"title": "Wheels", "namespace": "ada", "description": "All that turns."}
    first = {"type": "paper", "id": paper}
    inner = _answer(ada.post("/api/collections", json={"title": "Cogs", "namespace": "ada"}))
    collection = _answer(ada.post("/api/collections", json=wheels | {"item": first}))["slug"]
    for type_, name in (("model", "ada/engine-7b"), ("collection", inner["slug"])):
        item = {"item": {"type": type_, "id": name}, "note": "To begin with."}
        _answer(ada.post(f"/api/collections/{collection}/items", json=item))
    return {"paper": paper, "post": post, "blog": blog, "collection": collection}


def _listed_jobs(ada: httpx2.Client) -> dict[str, str]:
    """Run jobs to their end, one of them by a schedule."""
    body: dict[str, Any] = {"dockerImage": "ubuntu", "flavor": "cpu-basic"}
    fails = {
        "command": ["sh", "-c", "echo weaving; exit 3"],
        "environment": {"EPOCHS": "4"},
        "secrets": {"LOOM_KEY": "s3cret"},
        "labels": {"name": "weave", "team": "looms"},
        "volumes": [
            {"type": "dataset", "source": "ada/numbers", "mountPath": "/data"},
            {"type": "bucket", "source": "ada/box", "mountPath": "/out"},
        ],
    }
    works = {"command": ["echo", "hello"], "labels": {"name": "nightly"}}
    failed = _answer(ada.post("/api/jobs/ada", json=body | fails))
    schedule = {"schedule": "0 3 * * 1-5", "jobSpec": body | works}
    scheduled = _answer(ada.post("/api/scheduled-jobs/ada", json=schedule))
    started = _answer(ada.post(f"/api/scheduled-jobs/ada/{scheduled['id']}/run"))
    _answer(ada.post("/api/jobs/analytical", json=body | works))
    for job in (failed, started):
        # The stream of a job ends with it.
        _answer(ada.get(f"/api/jobs/ada/{job['id']}/events"))
    return {"listed_job": failed["id"], "schedule": scheduled["id"]}


def _webhooks(ada: httpx2.Client) -> dict[str, str]:
    """Add a webhook whose target refuses, because it is the hub itself, and test it."""
    webhook = {
        "url": f"{str(ada.base_url).rstrip('/')}/api/whoami-v2",
        "watched": [{"type": "model", "name": "ada/engine-7b"}, {"type": "user", "name": "ada"}],
        "domains": ["repo", "discussion"],
        "secret": "steam",
    }
    added = _answer(ada.post("/api/settings/webhooks", json=webhook))["webhook"]["id"]
    sent = _answer(ada.post(f"/api/settings/webhooks/{added}/ping"))
    return {"webhook": added, "delivery": sent["deliveryId"]}


def _apps(server: Server, ada: httpx2.Client) -> dict[str, str]:
    body = {"name": "Loom", "redirectUris": [_CALLBACK], "scopes": ["openid", "profile", "email"]}
    app = _answer(ada.post("/api/settings/oauth-apps", json=body))
    query = {
        "client_id": app["clientId"],
        "redirect_uri": _CALLBACK,
        "response_type": "code",
        "scope": "openid profile",
        "state": "s",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
    }
    asked = {"client_id": app["clientId"], "scope": "openid profile"}
    with server.client() as anybody:
        device = _answer(anybody.post("/oauth/device", data=asked))
    return {
        "app": app["clientId"],
        "authorization": urlencode(query),
        "user_code": device["user_code"],
    }


_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKlD5fs7LCSzTvhFSEBwaFX6JVN5Rm+6oFZmgOaBYVDw ada"


def _account(server: Server, place: Place, ada: httpx2.Client) -> dict[str, str]:
    """Give ada addresses, a key and tokens; return links that are used without a login."""
    for address in ("ada@example.com", "work@example.com"):
        _answer(ada.post("/api/settings/emails", json={"email": address}))
    _answer(ada.post("/api/settings/ssh-keys", json={"title": "laptop", "key": _KEY}))
    scoped = [{"owner": "analytical", "scopes": ["jobs", "webhooks"]}]
    token = {"name": "nightly", "role": "fineGrained", "scopes": ["read-repos"], "scoped": scoped}
    _answer(ada.post("/api/settings/tokens", json=token))
    with server.client(server.token) as administrator:
        invited = _answer(administrator.post("/api/admin/invitations", json={}))
    made = run_hublet("user", "reset-link", "charles", *place.flags, folder=place.folder)
    assert made.returncode == 0, made.stderr
    return {
        "invitation": invited["link"].rpartition("/")[2],
        "reset": made.stdout.strip().rpartition("/")[2],
    }


def _inbox(ada: httpx2.Client) -> dict[str, str]:
    """Wait for a message of the hub; mute a thread and a repository, watch a person."""
    found: list[Any] = []

    def is_there() -> bool:
        found[:] = _answer(ada.get("/api/notifications"))["notifications"]
        return any(_is_message(each) for each in found) and any("repo" in each for each in found)

    wait_until(is_there, seconds=SOON_SECONDS)
    charles = _answer(ada.get("/api/users/charles/overview"))["_id"]
    repo = _answer(ada.get("/api/models/ada/empty"))["_id"]
    thread = next(each["discussion"]["id"] for each in found if "repo" in each)
    muted = [{"type": "repo", "id": repo}, {"type": "thread", "id": thread}]
    _answer(ada.patch("/api/settings/watch", json={"add": [{"type": "user", "id": charles}]}))
    _answer(ada.patch("/api/settings/mute", json={"add": muted}))
    return {"message": next(each["post"]["id"] for each in found if _is_message(each))}


def _is_message(item: Any) -> bool:
    return item["type"] == "post" and item["post"]["authorName"] == "hublet"


def _organization_settings(server: Server, ada: httpx2.Client) -> dict[str, str]:
    """Fill the settings of analytical; return the ids of a resource group and a service account."""
    with server.client(server.token) as administrator:
        plan = {"plan": "enterprise-plus"}
        path = "/api/admin/organizations/analytical/plan"
        _answer(administrator.put(path, json=plan))
    root = "/api/organizations/analytical"
    _answer(ada.post("/api/organizations", json={"name": "loom-works"}))
    group = _answer(
        ada.post(f"{root}/resource-groups", json={"name": "research", "description": "What is new"})
    )["id"]
    _answer(
        ada.put(f"{root}/resource-groups/{group}/members/charles", json={"role": "contributor"})
    )
    _create(ada, "weaver", organization="analytical", resourceGroupId=group)
    _create(ada, "store", "bucket", organization="analytical")
    _answer(ada.put("/api/buckets/analytical/store/files/numbers.bin", content=bytes(40_000)))
    account = _answer(ada.post(f"{root}/service-accounts", json={"name": "ci", "role": "write"}))[
        "id"
    ]
    tokens = f"{root}/service-accounts/{account}/tokens"
    _answer(ada.post(tokens, json={"name": "runner", "role": "write"}))
    app = {
        "name": "Reader",
        "redirectUris": [_CALLBACK],
        "scopes": ["openid"],
        "organization": "analytical",
    }
    _answer(ada.post("/api/settings/oauth-apps", json=app))
    schemas = "urn:ietf:params:scim:schemas:core:2.0"
    scim = f"{root}/scim-provisioning/v2"
    user = _answer(
        ada.post(f"{scim}/Users", json={"schemas": [f"{schemas}:User"], "userName": "luigi"})
    )
    _answer(
        ada.post(
            f"{scim}/Groups",
            json={
                "schemas": [f"{schemas}:Group"],
                "displayName": "analytical:write",
                "members": [{"value": user["id"]}],
            },
        )
    )
    _answer(ada.post(f"{root}/invitations", json={"role": "read"}))
    return {"group": group, "account": account}
