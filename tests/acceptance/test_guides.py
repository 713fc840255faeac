"""Every command of the guides is run, and shows what its page shows."""

import re
import shutil
from pathlib import Path

import pytest

from acceptance.guide_preludes import PRELUDES
from acceptance.guide_runner import a_guide_runner
from acceptance.transcripts import languages_of, transcripts_of
from hublet.core.config import Settings
from hublet.jobs.requests import MAX_VOLUMES
from hublet.jobs.schedules.service import MAX_SCHEDULED_JOBS
from hublet.notifications.inbox.stream import MOST_STREAMS
from hublet.notifications.watch_schemas import MOST_PER_REQUEST
from hublet.notifications.watches import MOST_MUTED, MOST_WATCHED
from hublet.registry import records as registry_names
from hublet.registry.routes import LARGEST_MANIFEST
from hublet.registry.tokens import MOST_REPOSITORIES, TOKEN_LIFE
from hublet.repos import names
from hublet.repos.commits.parser import MOST_OPERATIONS
from hublet.repos.files import batch
from hublet.repos.pruning import REGISTRATION_AGE
from hublet.repos.xet.cas import MOST_UPLOADS, MOST_UPLOADS_OF_USER
from hublet.storage.shards import LARGEST_SHARD
from hublet.storage.xorbs import LARGEST_CHUNK, MOST_CHUNKS
from oci_images import needed

ROOT = Path(__file__).parents[2]
PATHS = {path.stem: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
PAGES = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}
# The events are written by `make docs`, and the interface is a table of tests.
GUIDES = [name for name in PAGES if name not in {"README", "events", "interface"}]
FEW = 10
JOBS, LIMITS = Settings().jobs, Settings().limits


@pytest.mark.parametrize("name", ["README", *GUIDES])
def test_every_command_shows_what_the_page_shows(name: str, tmp_path: Path) -> None:
    if name in {"command-line", "jobs", "webhooks"} and shutil.which("bwrap") is None:
        pytest.skip("The page runs jobs in the sandbox, which needs bubblewrap.")
    for program in ("bwrap", "buildah", "skopeo", "busybox") if name == "containers" else ():
        needed(program)
    with a_guide_runner(tmp_path) as reader:
        reader.follow(PRELUDES[name])
        reader.follow(PAGES[name])


def test_little_is_not_run_and_the_page_says_why() -> None:
    transcripts = [each for page in PAGES.values() for each in transcripts_of(page)]
    reasons = [each.reason for each in transcripts if each.reason is not None]

    assert 0 < len(reasons) <= FEW
    assert [reason for reason in reasons if len(reason.split()) < 4] == []


def test_commands_stand_in_transcripts_only() -> None:
    found = {language for page in PAGES.values() for language in languages_of(page)}

    assert found <= {"console", "json", "python", "text", "toml"}


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_leads_on(name: str) -> None:
    last = PAGES[name].rpartition("\n## ")[2]

    assert last.startswith("Where to go on\n")
    assert re.search(r"\]\([\w-]+\.md", last)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("notifications", f"| {MOST_WATCHED} each; {MOST_PER_REQUEST} in a request |"),
        ("notifications", f"| open streams of a user | {MOST_STREAMS} |"),
        ("containers", f"| a manifest | {LARGEST_MANIFEST / 2**20:g} MiB |"),
        ("containers", f"| a name | {registry_names.MAX_NAME_LENGTH} characters |"),
        ("containers", f"| repositories of one registry token | {MOST_REPOSITORIES} |"),
        ("containers", f"| a registry token | {TOKEN_LIFE.total_seconds() / 3600:g} hour;"),
        ("jobs", f"| {JOBS.timeout_seconds / 60:g} minutes unless"),
        ("jobs", f"says so, {JOBS.max_timeout_seconds / 86400:g} days at most"),
        ("jobs", f"| {JOBS.concurrent} (`jobs.concurrent`)"),
        ("jobs", f"| {JOBS.log_bytes / 2**30:g} GiB (`jobs.log_bytes`) |"),
        ("jobs", f"| volumes of a job | {MAX_VOLUMES} |"),
        ("jobs", f"| scheduled jobs of a user or organization | {MAX_SCHEDULED_JOBS} |"),
        ("repositories", f"| a file | {LIMITS.file_bytes / 2**30:g} GiB (`limits.file_bytes`) |"),
        (
            "repositories",
            f"| {names.MAX_PATH_BYTES} bytes, {names.MAX_SEGMENT_BYTES} in each part |",
        ),
        ("repositories", f"| a commit | {MOST_OPERATIONS} operations |"),
        (
            "repositories",
            f"| {batch.MAX_OPERATIONS} operations, {batch.MAX_BATCH_BYTES >> 20} MiB |",
        ),
        ("notifications", f"| {MOST_MUTED} each; "),
        ("storage", f"| a file | {LIMITS.file_bytes / 2**30:g} GiB (`limits.file_bytes`) |"),
        ("storage", f"| a xorb | 64 MiB of content, {MOST_CHUNKS} chunks |"),
        ("storage", f"| a chunk | {LARGEST_CHUNK >> 10} KiB |"),
        ("storage", f"| a shard | {LARGEST_SHARD >> 20} MiB, and 200,000 segments "),
        ("storage", f"| {MOST_UPLOADS_OF_USER} of a user, {MOST_UPLOADS} in all; "),
        ("storage", f"| is removed after {REGISTRATION_AGE.days} days |"),
    ],
)
def test_the_limits_are_those_of_the_hub(name: str, row: str) -> None:
    assert PAGES[name].partition("\n## Limits\n")[2].count(row) == 1


def anchors_of(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", PAGES[name])
    broken = []
    for target, anchor in links:
        path = PATHS[name].parent / target if target else PATHS[name]
        if not path.exists() or (anchor and anchor not in anchors_of(path.read_text())):
            broken.append((target, anchor))

    assert broken == []


def test_a_newcomer_finds_every_guide_from_the_first() -> None:
    linked = re.findall(r"\(([\w-]+)\.md", PAGES["quickstart"])

    assert {*linked} == {*GUIDES} - {"quickstart"}
