"""All pages of the hub: one table, and one seeded hub to open them on.

Whoever builds a page adds its line to `PAGES`; every proof over all pages then covers it.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx2

from processes import Place, Server, run_hublet, serving
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
    _page("no models of this name", "/models?search=nothing"),
    _page("search", "/search?q=engine"),
    _page("search without result", "/search?q=zzzzqqqq"),
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
    _page("empty model", "/ada/empty"),
    _page("empty model, a reader", "/ada/empty", who="charles"),
    _page("upload to a bucket", "/buckets/ada/box/upload/data"),
    _page("deletion in a bucket", "/buckets/ada/box/delete/data/notes.txt"),
    _page("empty bucket", "/buckets/ada/empty-box"),
    _page("gated model, a reader", "/ada/gated", who="charles"),
    _page("gated files, a reader", "/ada/gated/tree/main", who="charles"),
    _page("new model", "/new"),
    _page("new dataset", "/new-dataset"),
    _page("settings of a model", "/ada/engine-7b/settings"),
    _page("settings of a gated model", "/ada/gated/settings"),
    _page("webhooks of a model", "/ada/engine-7b/settings/webhooks"),
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
    # Settings, and what apps ask.
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
    with serving(place) as server:
        clients = {name: _person(server, place, name) for name in ("ada", "charles")}
        _organization(server)
        values = {
            **_repositories(clients["ada"], clients["charles"]),
            **_publications(clients["ada"], clients["charles"]),
            **_apps(server, clients["ada"]),
        }
        _break_folders(place, values["broken"])
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
    for name, kind in (("box", "bucket"), ("loom", "container"), ("empty-box", "bucket")):
        _create(ada, name, kind)
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
    _answer(ada.post("/api/models/ada/engine-7b/tag/main", json={"tag": "v1"}))
    last = _commit(ada, "models/ada/engine-7b", {"config.json": _config(layers=40)}, "More layers")
    return threads | {
        "broken": _answer(ada.get("/api/models/ada/broken"))["_id"],
        "commit": last["commitOid"],
        "first_commit": first["commitOid"],
    }


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
    return {"paper": paper, "post": post, "blog": blog}


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
