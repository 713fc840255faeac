"""A node dies inside real pushes and uploads: another node serves all of each, or nothing of it."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from benchmarks.processes import free_port

from cluster import Node, beside, copy_keys
from faults.forked_hubs import ForkServer
from object_storage import CREDENTIALS
from patience import SOON_SECONDS
from processes import Place, clean_environment

# Each takes seconds on a busy machine, so the suite has few; `HUBLET_PUSH_KILLS=100` makes it a hundred.
KILLS = int(os.environ.get("HUBLET_PUSH_KILLS", "10"))
NEVER = 1 << 40
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    variables = IDENTITY | {"HOME": str(folder), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=2 * SOON_SECONDS,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class Writer:
    """Writes to the node that dies, and looks at what the other one serves."""

    def __init__(self, folder: Path, *, dying: str, lasting: str, token: str) -> None:
        self._dying, self._token = dying, token
        self._urls = [
            f"{each.replace('://', f'://git:{token}@')}/admin/engine" for each in (dying, lasting)
        ]
        self.work, self.mirror = folder / "work", folder / "mirror.git"
        git(folder, "clone", "-q", self._urls[1], "work")
        git(folder, "init", "-q", "--bare", "mirror.git")
        self.answered: set[str] = set()

    def write(self, number: int) -> None:
        """Push a commit to two branches, or upload a file; remember what was answered with success."""
        git(self.work, "fetch", "-q", self._urls[1], "main")
        git(self.work, "reset", "-q", "--hard", "FETCH_HEAD")
        if number % 4 == 3:
            self._upload(number)
        else:
            self._push(number)
        # Which fails if anything is missing that a ref reaches.
        git(self.mirror, "fetch", "-q", "--prune", self._urls[1], "+refs/*:refs/*")

    def _push(self, number: int) -> None:
        # Small packs lie in rows, large ones in the store.
        (self.work / f"{number}.bin").write_bytes(os.urandom(100_000 if number % 2 else 10))
        git(self.work, "add", ".")
        git(self.work, "commit", "-q", "-m", f"Push {number}.")
        new = git(self.work, "rev-parse", "HEAD").stdout.strip()
        branches = ("main", f"branch-{number}")
        pushed = git(
            self.work, "push", "-q", self._urls[0], *(f"HEAD:refs/heads/{each}" for each in branches),
            check=False,
        )  # fmt: skip
        refs = self.refs()
        seen = [refs.get(f"refs/heads/{each}") == new for each in branches]
        assert seen in ([True, True], [False, False]), f"half of push {number} is visible"
        if pushed.returncode == 0:
            assert seen == [True, True], pushed.stderr
            self.answered.add(new)

    def _upload(self, number: int) -> None:
        script = (
            "import sys; from huggingface_hub import HfApi; "
            "print(HfApi().upload_file(path_or_fileobj=sys.argv[1].encode(), repo_id='admin/engine', "
            "path_in_repo=sys.argv[1]).oid)"
        )
        variables = {"HF_ENDPOINT": self._dying, "HF_TOKEN": self._token, "HF_HOME": str(self.work)}
        done = subprocess.run(
            [sys.executable, "-c", script, f"{number}.txt"],
            env=clean_environment(variables),
            capture_output=True,
            text=True,
            timeout=2 * SOON_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            self.answered.add(done.stdout.strip())

    def refs(self, which: int = 1) -> dict[str, str]:
        lines = git(self.work, "ls-remote", "-q", self._urls[which]).stdout.splitlines()
        return {name: oid for oid, _, name in (line.partition("\t") for line in lines)}

    def check_all(self) -> None:
        """Insist that both nodes serve the same, whole, with all that was answered."""
        assert self.refs(0) == self.refs(1)
        for number, url in enumerate(self._urls):
            name = f"last-{number}.git"
            git(self.mirror.parent, "clone", "-q", "--mirror", url, name)
            copy = self.mirror.parent / name
            assert "missing" not in git(copy, "fsck", "--full").stderr
            reached = set(git(copy, "rev-list", "--all").stdout.split())
            assert self.answered <= reached


@pytest.mark.timeout(900 + 30 * KILLS)
@pytest.mark.parametrize("seed", [23])
def test_no_kill_inside_a_push_loses_or_half_shows_it(
    fresh_url: Callable[[], str], bucket_url: str, tmp_path: Path, seed: int
) -> None:
    place, chance = Place(folder=tmp_path, database_url=fresh_url()), random.Random(seed)
    variables = {"HUBLET_STORAGE_URL": bucket_url, **CREDENTIALS}
    lasting = Node(
        place=place, port=free_port(), arguments=("serve", "--json"), variables=variables
    )
    told = lasting.start()
    token = json.loads(Path(told["firstAdministrator"]).read_text())["token"]
    copy_keys(place, other := beside(place, 1))
    address = f"http://127.0.0.1:{(port := free_port())}"
    dying = ForkServer(other, "--role", "api", "--port", str(port), variables=variables)
    try:
        create(lasting.address, token)
        writer = Writer(tmp_path, dying=address, lasting=lasting.address, token=token)
        steps = {}
        for number in (2, 3):
            with dying.serving(at=NEVER):
                writer.write(number)
            steps[number] = dying.steps()
        assert len(writer.answered) == len(steps)
        killed = 0
        for number in range(4, KILLS + 4):
            kind = 3 if number % 4 == 3 else 2
            with dying.serving(at=chance.randrange(1, steps[kind])):
                writer.write(number)
            killed += dying.was_killed
            if not dying.was_killed:
                # Later writes may have fewer steps than the first, which found nothing in the folder.
                steps[kind] = dying.steps()
        with dying.serving(at=NEVER):
            writer.check_all()
    finally:
        dying.close()
        lasting.stop()
    assert killed >= KILLS * 3 // 5


def create(address: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    body = {"name": "engine", "type": "model"}
    created = httpx2.post(
        f"{address}/api/repos/create", headers=headers, json=body, trust_env=False
    )
    assert created.status_code == 200
