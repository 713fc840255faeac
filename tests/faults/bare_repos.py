"""The bare repositories on the disk, as git itself sees them."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from hublet.repos.git.bare_repos import folder_of
from patience import SOON_SECONDS
from processes import Place, Server, clean_environment

# Nothing of the developer's own git may decide what a test finds.
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@hub.test",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@hub.test",
    # Small files here are never pointers; without the filter nothing has to be fetched.
    "GIT_LFS_SKIP_SMUDGE": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, and insist that it ends well."""
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=folder,
        env=clean_environment(_ALONE),
        capture_output=True,
        text=True,
        timeout=SOON_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"git {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def start_git(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start git in a folder; whoever starts it waits for its end."""
    return subprocess.Popen(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=folder,
        env=clean_environment(_ALONE),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def folder_in(place: Place, repo_id: str) -> Path:
    return folder_of(place.data_dir, repo_id)


def folders_in(place: Place) -> set[Path]:
    return set((place.data_dir / "repos").glob("*/*.git"))


def check_whole(folder: Path, commits: Iterable[str]) -> None:
    """Insist that everything these commits reach is there.

    They are named one by one: refs lie in the database, so git alone would look at nothing.
    """
    git(folder, "fsck", "--connectivity-only", "--no-dangling", "--no-progress", *commits)


def commits_in(folder: Path) -> set[str]:
    """Return the ids of all commits on the disk, whether or not anything points to them."""
    listed = git(folder, "cat-file", "--batch-all-objects", "--batch-check")
    return {line.split()[0] for line in listed.splitlines() if line.split()[1] == "commit"}


def clone_url(server: Server, name: str, *, token: str) -> str:
    return server.address.replace("http://", f"http://user:{token}@") + f"/{name}"
