"""Demo data: users, organizations and tokens, added step by step where they are missing.

And the texts and files of the week that `demo_week` lets them have.
"""

import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp, sin

from hublet.accounts.errors import ResourceGroupNameTaken
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import service_accounts
from hublet.accounts.organizations import store as places
from hublet.accounts.passwords import new_password
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.resource_groups import service as groups
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core import clock, ids, metadata
from hublet.core.clock import now, wire
from hublet.core.database import Connection, Database
from hublet.core.errors import Conflict
from hublet.tokens import service as tokens
from hublet.tokens import store as credentials
from hublet.tokens.records import Grants, Scope, TokenRole

PEOPLE = {
    "ada": "Ada Lovelace",
    "alan": "Alan Turing",
    "grace": "Grace Hopper",
    "katherine": "Katherine Johnson",
}
# Administers the hub, besides whoever set it up.
ADMINISTRATOR = "katherine"
ORGANIZATIONS = {
    "analytical-engines": ("Analytical Engines", OrganizationPlan.enterprise),
    "night-sky": ("Night Sky Survey", OrganizationPlan.team),
    "open-notebook": ("Open Notebook", OrganizationPlan.free),
}
MEMBERS = (
    ("analytical-engines", "ada", Role.admin),
    ("analytical-engines", "grace", Role.write),
    ("analytical-engines", "alan", Role.contributor),
    ("night-sky", "katherine", Role.admin),
    ("night-sky", "ada", Role.read),
    ("open-notebook", "alan", Role.admin),
)
# The organization, the name, what it is for, and one member with a role.
GROUPS = (
    ("analytical-engines", "research", "What is not public yet", "grace", Role.admin),
    ("night-sky", "observers", "Those who look", "ada", Role.write),
)
ROBOTS = {"engine-robot": ("analytical-engines", Role.write)}
FOLLOWS = (("grace", "ada"), ("alan", "ada"), ("katherine", "grace"))
TOKENS = (
    ("ada", "demo: may do everything", TokenRole.write, None),
    ("grace", "demo: only reads", TokenRole.read, None),
    ("alan", "demo: only webhooks", TokenRole.fine_grained, Scope.webhooks),
    ("engine-robot", "demo: only jobs", TokenRole.fine_grained, Scope.jobs),
)

GATED = "ada/engine-70b"
PLATES = "night-sky/plates"
ENGINE = "ada/engine-7b"
CARD = """---
language: [en]
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
datasets: [night-sky/plates]
tags: [arithmetic, arxiv:2401.12345]
---
# Engine 7B

![Loss over steps](plot.png)

Engine is a small language model that does **arithmetic** carefully. It was trained on
[the plates](/datasets/night-sky/plates), four epochs, on one machine. See [train.py](src/train.py).

## Results

| Task | Engine 7B | Baseline |
|---|--:|--:|
| GSM8K (8-shot) | 61.4 | 54.2 |
| MATH (4-shot) | 24.9 | 21.7 |

> [!WARNING]
> Do not use it where a wrong number hurts somebody.

## How to use it

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("ada/engine-7b")
model = AutoModelForCausalLM.from_pretrained("ada/engine-7b")
```
"""
GATE = """---
license: other
extra_gated_prompt: Tell us what you want to compute.
extra_gated_fields:
  Company: text
  Country: country
  Use: {type: select, options: [Research, Teaching, Production]}
  I agree to the terms: checkbox
---
# Engine 70B

The large engine. It is given to those who say what for.
"""
TRAIN = '''"""Train the engine."""

import torch
from torch.nn import functional


def train(model: torch.nn.Module, batches: list[torch.Tensor], rate: float = 3e-4) -> float:
    """Return the last loss, after one step for each batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    loss = torch.tensor(0.0)
    for step, batch in enumerate(batches):
        loss = functional.cross_entropy(model(batch[:-1]), batch[1:])
        loss.backward()
        optimizer.step()
        print(f"step={step} loss={loss.item():.4f}")
    return loss.item()
'''
OTHERS = (
    ("grace", "grace/matmul", "kernel", "---\nlicense: mit\ntags: [cuda]\n---\n# Matmul\n\nA kernel for small matrices.\n"),
    ("alan", "alan/bombe", "space", "---\nsdk: static\nlicense: mit\n---\n# Bombe\n\nAn imitation game.\n"),
    ("katherine", PLATES, "dataset", "---\nlicense: cc-by-4.0\ntags: [astronomy]\n---\n# Plates\n\nWhat the telescope saw, a row for each star.\n"),
    ("ada", "analytical-engines/difference", "model", "---\nlicense: mit\n---\n# Difference\n\nA draft, not public yet.\n"),
    ("ada", GATED, "model", GATE),
)  # fmt: skip
# Nobody has the other half.
SSH_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDhjKNumlRXKpL20EclljyJQAktCUQ6pRphxTU2IJUGv ada@engine"
)

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
QUESTION = {
    "title": "Does it run on one 24 GB card?",
    "description": "In `bfloat16`, say. @ada, what did you use?",
}
# Who, in which thread, what, and who reacts with which emoji.
COMMENTS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("ada", "question", "It does, with 15 GB:\n\n![Loss](plot.png)", {"alan": "heart", "grace": "rocket"}),
    ("alan", "question", "Thank you!\n\n```sh\nhf download ada/engine-7b\n```", {"ada": "thumbsup"}),
    ("grace", "merged", "Thanks for the quick merge.", {"ada": "hugs"}),
    ("ada", "conflict", "`config.json` changed meanwhile, could you look at it again?", {"alan": "eyes"}),
    ("alan", "ready", "@grace, does it agree with the padding?", {}),
    ("grace", "ready", "It does. Ready from my side, @ada.", {"alan": "plus"}),
)  # fmt: skip
PROPOSALS = (
    ("grace", "merged", "LICENSE", "Apache-2.0\n", "Add the license", "The card names it, the file was missing."),
    ("alan", "conflict", "config.json", '{\n  "layers": 48\n}\n', "Pad on the left when batching", "Every batch ends in *pad* tokens, @ada."),
    ("grace", "ready", "src/decode.py", "PAD = 0\n", "Decode in one place", "Two scripts did it differently."),
)  # fmt: skip
LIKES = (
    *((who, f"models/{ENGINE}") for who in ("grace", "alan", "katherine")),
    ("ada", f"datasets/{PLATES}"),
    ("ada", "spaces/alan/bombe"),
)
PAPERS = (
    ("ada", {"arxivId": "2401.12345", "title": "Notes on the Engine", "summary": "The engine weaves algebraic patterns as the loom weaves flowers and leaves.", "authors": ["Ada Lovelace", "Luigi Menabrea"]}),
    ("katherine", {"arxivId": "2402.00042", "title": "Orbits by Hand", "summary": "How to check a machine that computes trajectories.", "authors": ["Katherine Johnson"]}),
)  # fmt: skip
POST = {"title": "It ran", "content": "A compiler is a translator: **nobody believed it**, and then it ran. See @ada"}  # fmt: skip
BLOG = {
    "title": "How the engine weaves",
    "content": "As the loom does, with **cards**, in two steps.\n\n## Count\n\nIt all begins with counting."
    "\n\n## Compare\n\nThe baseline is the loom.\n",
}

_METADATA_KEY = "demo"
_WEEK_KEY = "demo.week"
# Speaks for a person while the hub is filled, and is never printed.
_FILLING = "demo: fills the hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    what: str
    name: str
    detail: str
    # A password or token, which is not stored in plain text.
    secret: str | None = None


async def fill(conn: Connection) -> list[Addition]:
    """Add what is missing of the demo data, or refuse a hub that has other users of these names."""
    if await metadata.find(conn, _METADATA_KEY) is None:
        await _refuse_taken_names(conn)
        await metadata.set_value(conn, _METADATA_KEY, wire(now()))
    return [addition for step in STEPS for addition in await step(conn)]


async def _refuse_taken_names(conn: Connection) -> None:
    for name in (*PEOPLE, *ORGANIZATIONS, *ROBOTS):
        if await users.find_by_name(conn, name) or await places.find_by_name(conn, name):
            raise Conflict(
                f"The name {name} belongs to somebody who is not of the demo: use a hub of its "
                "own, with --data-dir."
            )


async def _add_people(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, fullname in PEOPLE.items():
        if await users.find_by_name(conn, name) is None:
            password = new_password()
            await accounts.create_user(
                conn, name, fullname=fullname, email=f"{name}@demo.example", password=password,
                is_admin=name == ADMINISTRATOR,
            )  # fmt: skip
            added.append(Addition(what="user", name=name, detail=fullname, secret=password))
    return added


async def _add_organizations(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, (fullname, plan) in ORGANIZATIONS.items():
        if await places.find_by_name(conn, name) is None:
            await organizations.create(conn, OPERATOR, name, fullname=fullname, plan=plan)
            added.append(Addition(what="organization", name=name, detail=plan))
    return added


async def _add_members(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, member, role in MEMBERS:
        organization = await organizations.get(conn, name)
        user = await accounts.get_user(conn, member)
        if await places.role_of(conn, organization.id, user_id=user.id) is None:
            await organizations.set_member(conn, OPERATOR, organization, user, role)
            added.append(Addition(what="member", name=member, detail=f"{role} in {name}"))
    return added


async def _add_groups(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for place, name, description, member, role in GROUPS:
        organization = await organizations.get(conn, place)
        user = await accounts.get_user(conn, member)
        with suppress(ResourceGroupNameTaken):
            group = await groups.create(
                conn, OPERATOR, organization, name=name, description=description
            )
            await groups.set_member(conn, OPERATOR, organization, group, user, role)
            added.append(Addition(what="resource group", name=name, detail=f"in {place}"))
    return added


async def _add_robots(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, (place, role) in ROBOTS.items():
        if await users.find_by_name(conn, name) is None:
            organization = await organizations.get(conn, place)
            await service_accounts.create(conn, OPERATOR, organization, name, role=role)
            added.append(Addition(what="service account", name=name, detail=f"{role} in {place}"))
    return added


async def _add_follows(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, followed in FOLLOWS:
        follower_id = (await accounts.get_user(conn, name)).id
        account_id = (await accounts.get_user(conn, followed)).id
        if not await accounts.is_following(conn, viewer_id=follower_id, account_id=account_id):
            await accounts.follow(conn, follower_id=follower_id, account_id=account_id)
            added.append(Addition(what="follow", name=name, detail=f"follows {followed}"))
    return added


async def _add_tokens(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for owner, name, role, scope in TOKENS:
        user = await accounts.get_user(conn, owner)
        known = {token.name for token in await credentials.list_of(conn, user_id=user.id)}
        if name not in known:
            grants = Grants(everywhere=frozenset({scope})) if scope else None
            _, value = await tokens.issue(
                conn, user_id=user.id, name=name, role=role, grants=grants
            )
            added.append(Addition(what="token", name=owner, detail=name, secret=value))
    return added


async def fill_week(database: Database) -> list[Addition]:
    """Add a week of repositories, threads, deliveries and jobs, once; the clock is put back after it."""
    async with database.transaction() as conn:
        if await metadata.find(conn, _WEEK_KEY) is not None:
            return []
        await metadata.set_value(conn, _WEEK_KEY, wire(now()))
    try:
        return await _fill_week(database, end=now())
    finally:
        clock.reset()


async def _fill_week(database: Database, *, end: datetime) -> list[Addition]:
    # Loads the whole application, which other parts of the demo do not need.
    from hublet.cli.demo_hub import DemoHub
    from hublet.cli.demo_jobs import DemoJobs
    from hublet.cli.demo_week import HOURS, PAGES, DemoWeek

    # Before the week begins, so that ids grow with its time.
    clock.move(-timedelta(hours=HOURS))
    ids.restart()
    issued = await _issue_tokens(database)
    values = {name: value for name, (_, value) in issued.items()}
    hub = DemoHub(database, values, seed="demo")
    jobs = DemoJobs(hub, end, values["ada"])
    await DemoWeek(hub, end - timedelta(hours=HOURS), jobs).fill()
    async with database.transaction() as conn:
        for token_id, _ in issued.values():
            await credentials.revoke(conn, token_id)
    return [
        *(Addition(what="page", name=path, detail=detail) for path, detail in PAGES),
        *(
            Addition(
                what="job",
                name=f"/jobs/{owner}/{job.id}",
                detail=f"{job.labels['name']}, {job.stage}",
            )
            for owner, job in jobs.made
        ),
    ]


async def _issue_tokens(database: Database) -> dict[str, tuple[str, str]]:
    """Issue a token for each person; return its id and its value, by the name of the person."""
    issued = {}
    async with database.transaction() as conn:
        for name in PEOPLE:
            user = await accounts.get_user(conn, name)
            token, value = await tokens.issue(
                conn, user_id=user.id, name=_FILLING, role=TokenRole.write
            )
            issued[name] = (token.id, value)
    return issued


# In the order of their dependencies.
STEPS: tuple[Callable[[Connection], Awaitable[list[Addition]]], ...] = (
    _add_people,
    _add_organizations,
    _add_members,
    _add_groups,
    _add_robots,
    _add_follows,
    _add_tokens,
)


def model_config(*, layers: int) -> str:
    return json.dumps({"layers": layers, "hidden": 4096, "heads": 32}, indent=2) + "\n"


def tensors() -> bytes:
    """Return a safetensors file of a few small tensors."""
    names = ("embed.weight", "layer.0.attention.weight", "layer.0.mlp.weight", "head.weight")
    head = json.dumps(
        {
            name: {"dtype": "BF16", "shape": [4, 8], "data_offsets": [64 * i, 64 * (i + 1)]}
            for i, name in enumerate(names)
        }
    ).encode()
    return struct.pack("<Q", len(head)) + head + bytes(64 * len(names))


def plot_picture(*, decay: int, width: int = 640, height: int = 280) -> bytes:
    """Return a PNG of a curve that falls and trembles."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + end

    rows = [bytearray(b"\xff" * (3 * width)) for _ in range(height)]
    for line in range(20, height, 52):
        rows[line] = bytearray(b"\xe8" * (3 * width))
    heights = [
        int(20 + (height - 50) * (1 - exp(-x / decay / 2)) + 6 * sin(x / 5) * exp(-x / 200))
        for x in range(width)
    ]
    for x, (before, y) in enumerate(zip([heights[0], *heights], heights, strict=False)):
        for at in range(min(before, y), min(height, max(before, y) + 3)):
            rows[at][3 * x : 3 * x + 3] = b"\x34\x5f\xd8"
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )
