"""Pulls from other registries: what is asked for, verified, resumed and refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hublet.core.config import Settings
from hublet.core.config.kinds import RegistryMirror, RegistryRule
from hublet.core.database import Database
from hublet.jobs import store as jobs_store
from hublet.jobs.records import JobRecord
from hublet.registry import credentials
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layer_download, pulls, registry_client, rootfs
from hublet.runtime.images.pulled_files import PulledFiles, images_folder
from hublet.runtime.images.pulls import ImagePuller
from people import a_user
from runtime.images.layouts import ELSEWHERE, HERE, MANIFEST, a_layer, entry, files_of
from runtime.images.remote_registry import TOKEN, RemoteRegistry, remote_registry
from runtime.supervisor.supervised_jobs import a_job, set_jobs

BASE = a_layer(entry("base", "shared"))
TOP = a_layer(entry("top", "t" * 3_000_000))


@pytest.fixture
async def registry(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RemoteRegistry]:
    for module in (registry_client, layer_download):
        monkeypatch.setattr(module, "RETRY_DELAYS", (0.0, 0.0))
    async with remote_registry() as registry:
        yield registry


class Pulls:
    """A hub that may pull from the registry, and the log of its job."""

    def __init__(self, database: Database, registry: RemoteRegistry, folder: Path) -> None:
        self.database = database
        self.registry = registry
        self.log_path = folder / "log"
        self.allow()

    def allow(self, **changes: Any) -> None:
        rule = RegistryRule(pattern=self.registry.host, is_plain=True)
        set_jobs(self.database, **({"registries": (rule,), "images": ()} | changes))

    @property
    def cache(self) -> Path:
        return images_folder(self.database.hub.settings.database.data_dir)

    async def pull(self, name: str = "ada/tool:1", owner: str = "ada") -> str:
        puller = ImagePuller(self.database)
        try:
            digest = await puller.pull(
                await self.job(owner),
                f"{self.registry.host}/{name}",
                is_space=False,
                log_path=self.log_path,
            )
        finally:
            await puller.close()
        assert digest is not None
        return digest

    async def refusal(self, name: str = "ada/tool:1") -> str:
        with pytest.raises(CannotRun) as refused:
            await self.pull(name)
        return str(refused.value).replace(self.registry.host, "HOST")

    async def job(self, owner: str) -> JobRecord:
        user = await a_user(self.database, owner)
        job_id = await a_job(self.database, owner)
        async with self.database.read() as conn:
            job = await jobs_store.find(conn, job_id, owner_id=user.id)
        assert job is not None
        return job

    def files(self, digest: str) -> dict[str, str]:
        manifest = PulledFiles(self.cache).load_image(digest)
        assert manifest is not None
        return files_of(rootfs.unpack_manifest(manifest, cache=self.cache))

    def log(self) -> list[str]:
        text = self.log_path.read_text().replace(self.registry.host, "HOST")
        return [line.partition(" ")[2] for line in text.splitlines()]


@pytest.fixture
def hub(database: Database, registry: RemoteRegistry, tmp_path: Path) -> Pulls:
    return Pulls(database, registry, tmp_path / "job")


async def test_an_image_is_pulled_verified_and_unpacked(hub: Pulls) -> None:
    digest = hub.registry.add_image("1", BASE, TOP)
    assert await hub.pull() == digest
    assert set(hub.files(digest)) == {"base", "top"}
    assert hub.log()[0] == "===== Pulling HOST/ada/tool:1: 2 layers, 2.9 MiB ====="
    assert hub.log()[-1] == "===== Pulled 2 of 2 layers, 2.9 MiB of 2.9 MiB ====="


async def test_the_image_for_this_machine_is_chosen_from_an_index(hub: Pulls) -> None:
    other = hub.registry.add_image("other", TOP, platform=ELSEWHERE)
    mine = hub.registry.add_image("mine", BASE)
    hub.registry.add_index("1", (other, ELSEWHERE), (mine, HERE))
    assert await hub.pull() == mine
    assert not any(
        hub.registry.blobs.get(each.rpartition("/")[2]) == TOP for each in hub.registry.paths
    )


async def test_a_second_pull_asks_only_what_the_tag_is(hub: Pulls) -> None:
    hub.registry.add_image("1", BASE)
    await hub.pull()
    before = len(hub.registry.paths)
    await hub.pull()
    assert [each.line for each in hub.registry.stranger.requests[before:]] == [  # type: ignore[union-attr]
        "HEAD /v2/ada/tool/manifests/1 HTTP/1.1"
    ]


async def test_a_digest_is_never_asked_for_again(hub: Pulls) -> None:
    digest = hub.registry.add_image("1", BASE)
    await hub.pull(f"ada/tool:9@{digest}")
    before = len(hub.registry.paths)
    assert await hub.pull(f"ada/tool@{digest}") == digest
    assert len(hub.registry.paths) == before


async def test_if_not_present_a_tag_is_not_asked_for_again(hub: Pulls) -> None:
    hub.allow(pull_policy="if-not-present")
    old = hub.registry.add_image("1", BASE)
    await hub.pull()
    hub.registry.add_image("1", TOP)
    assert await hub.pull() == old


async def test_a_tag_that_moved_is_pulled_again_and_layers_that_are_here_are_not(
    hub: Pulls,
) -> None:
    hub.registry.add_image("1", BASE)
    await hub.pull()
    new = hub.registry.add_image("1", BASE, TOP)
    assert await hub.pull() == new
    base = hub.registry.add_blob(BASE)["digest"]
    assert len(hub.registry.requests_for(base)) == 1


async def test_without_an_answer_the_image_that_is_here_is_used(hub: Pulls) -> None:
    digest = hub.registry.add_image("1", BASE)
    await hub.pull()
    hub.registry.failures = [(503, {})] * 3
    assert await hub.pull() == digest
    assert hub.log()[-1].startswith("===== The image that is here is used: HOST/ada/tool:1 cannot")


async def test_a_token_is_asked_for_by_the_challenge_and_used_for_all_that_follows(
    hub: Pulls,
) -> None:
    hub.registry.wants_token = True
    hub.registry.add_image("1", BASE, TOP)
    await hub.pull()
    assert len(hub.registry.requests_for("/token")) == 1
    [asked] = hub.registry.requests_for("/token")
    assert "authorization" not in asked.headers
    blobs = hub.registry.requests_for("/blobs/")
    assert {each.headers["authorization"] for each in blobs} == {f"Bearer {TOKEN}"}


async def test_a_redirect_to_another_host_is_followed_without_the_token(hub: Pulls) -> None:
    hub.registry.wants_token = True
    async with remote_registry() as elsewhere:
        hub.registry.redirects_to = f"http://{elsewhere.host}"
        hub.allow(
            registries=(
                RegistryRule(pattern=hub.registry.host, is_plain=True),
                RegistryRule(pattern=elsewhere.host, is_plain=True),
            )
        )
        hub.registry.add_image("1", BASE)
        elsewhere.blobs = hub.registry.blobs
        await hub.pull()
        seen = elsewhere.requests_for("/elsewhere/")
    assert len(seen) == 2
    assert not any("authorization" in each.headers for each in seen)
    assert all("signed=a%2Fb" in each.line for each in seen)


async def test_a_redirect_to_an_address_that_nobody_named_is_not_followed(
    hub: Pulls, settings: Settings
) -> None:
    assert not settings.outgoing.allow
    server = replace(hub.database.hub.settings.server, test_mode=False)
    changed = replace(hub.database.hub.settings, server=server)
    hub.database.hub = replace(hub.database.hub, settings=changed)
    hub.registry.redirects_to = "http://127.0.0.1:1"
    hub.registry.add_image("1", BASE)
    assert "127.0.0.1 is a loopback address" in await hub.refusal()


async def test_a_download_that_is_cut_goes_on_where_it_was(hub: Pulls) -> None:
    hub.registry.add_image("1", TOP)
    # The first response is the configuration.
    hub.registry.cuts = [10**9, 1_500_000, 700_000]
    digest = await hub.pull()
    assert set(hub.files(digest)) == {"top"}
    layer = hub.registry.add_blob(TOP)["digest"]
    ranges = [each.headers.get("range") for each in hub.registry.requests_for(layer)]
    assert ranges[0] is None
    assert len(ranges) == 3
    assert all(each is not None and each.startswith("bytes=") for each in ranges[1:])


async def test_a_layer_with_other_content_is_refused_and_nothing_is_left(hub: Pulls) -> None:
    hub.registry.add_image("1", BASE)
    layer = hub.registry.add_blob(BASE)["digest"]
    hub.registry.lies[layer] = b"x" * len(BASE)
    assert await hub.refusal() == f"The image is damaged: {layer} has other content."
    assert not any(path.is_file() for path in hub.cache.rglob("*sha256*/*"))
    del hub.registry.lies[layer]
    assert await hub.pull()


async def test_a_layer_without_end_is_not_read_to_its_end(hub: Pulls) -> None:
    hub.registry.add_image("1", BASE)
    layer = hub.registry.add_blob(BASE)["digest"]
    hub.registry.lies[layer] = b"x" * (len(BASE) + 10_000_000)
    assert await hub.refusal() == f"The image is damaged: {layer} has other content."


async def test_a_manifest_with_other_content_is_refused(hub: Pulls) -> None:
    hub.registry.add_image("1", BASE)
    hub.registry.lies["1"] = b"{}"
    assert "(what it sends is not sha256:" in await hub.refusal()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[]", "does not keep to the OCI image specification"),
        (b"{", "does not keep to the OCI image specification"),
        (b'{"schemaVersion": 1}', "is of the old schema 1"),
        (b" " * (4 * 2**20 + 1), "its manifest is longer than 4 MiB"),
    ],
)
async def test_a_manifest_without_sense_is_refused(
    hub: Pulls, content: bytes, sentence: str
) -> None:
    hub.registry.manifests["1"] = ("application/json", content)
    assert sentence in await hub.refusal()


async def test_a_name_that_is_not_there_is_refused(hub: Pulls) -> None:
    assert await hub.refusal("ada/tool:2") == (
        "HOST has no image ada/tool:2: check the name and the tag."
    )


async def test_a_private_image_is_refused_with_what_to_do(hub: Pulls) -> None:
    hub.registry.wants_token, hub.registry.login = True, ("ada", "secret")
    hub.registry.add_image("1", BASE)
    assert await hub.refusal() == (
        "HOST has no public image ada/tool:1: check the name; if it is private, store "
        "credentials for HOST."
    )


async def test_an_image_for_other_machines_is_refused(hub: Pulls) -> None:
    hub.registry.add_image("1", BASE, platform=ELSEWHERE)
    assert (await hub.refusal()).endswith("; it is for linux/mips.")


async def test_a_registry_that_does_not_answer_is_named(hub: Pulls) -> None:
    hub.registry.failures = [(503, {})] * 3
    assert await hub.refusal() == (
        "HOST/ada/tool:1 cannot be pulled from HOST (it answers with status 503): run the job "
        "again later, or ask an administrator whether this machine reaches that registry."
    )


async def test_a_registry_that_wants_us_to_wait_is_asked_again_after_that(
    hub: Pulls, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real_sleep(0)

    monkeypatch.setattr(registry_client.asyncio, "sleep", sleep)
    hub.registry.failures = [(429, {"Retry-After": "7"})]
    hub.registry.add_image("1", BASE)
    await hub.pull()
    assert 7.0 in waits


async def test_an_image_that_is_too_large_is_refused_before_it_is_fetched(hub: Pulls) -> None:
    hub.allow(image_bytes=2**20)
    hub.registry.add_image("1", TOP)
    assert (await hub.refusal()).startswith("The image is too large: its layers have 2.9 MiB")
    layer = hub.registry.add_blob(TOP)["digest"]
    assert not hub.registry.requests_for(layer)


async def test_a_full_disk_is_said_before_anything_is_fetched(
    hub: Pulls, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 64 * 2**20 + 1000})
    monkeypatch.setattr("hublet.runtime.images.pulled_files.shutil.disk_usage", lambda _: usage)
    hub.registry.add_image("1", TOP)
    assert (await hub.refusal()).startswith(
        "The disk of the hub's machine has no room for the image: it needs"
    )


async def test_two_jobs_that_want_the_same_image_pull_it_once(hub: Pulls) -> None:
    hub.registry.add_image("1", TOP)
    hub.registry.gate = asyncio.Event()
    await a_user(hub.database, "ada")
    both = asyncio.gather(hub.pull(), hub.pull())
    layer = hub.registry.add_blob(TOP)["digest"]
    await asyncio.sleep(0)
    hub.registry.gate.set()
    first, second = await both
    assert first == second
    assert len(hub.registry.requests_for(layer)) == 1


async def test_a_cancelled_pull_leaves_a_part_that_the_next_one_goes_on_with(hub: Pulls) -> None:
    hub.registry.add_image("1", TOP)
    layer = hub.registry.add_blob(TOP)["digest"]
    partial = PulledFiles(hub.cache).layer_path(layer)
    partial = partial.with_name(f"{partial.name}.{pulls.PUBLIC}.partial")
    partial.parent.mkdir(parents=True)
    partial.write_bytes(TOP[:2_000_000])
    await hub.pull()
    [request] = hub.registry.requests_for(layer)
    assert request.headers["range"] == "bytes=2000000-"
    assert not partial.exists()


async def test_cancelling_stops_a_pull(hub: Pulls) -> None:
    hub.registry.add_image("1", TOP)
    hub.registry.gate = asyncio.Event()
    pulling = asyncio.create_task(hub.pull())
    while not hub.registry.requests_for("/blobs/"):
        await asyncio.sleep(0.01)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling


async def test_a_mirror_is_asked_first_and_the_registry_if_it_fails(hub: Pulls) -> None:
    async with remote_registry() as mirror:
        url = f"http://{mirror.host}/hub"
        hub.allow(registry_mirrors=(RegistryMirror(host=hub.registry.host, url=url),))
        digest = mirror.add_image("1", BASE)
        hub.registry.add_image("2", TOP)
        assert await hub.pull() == digest
        assert not hub.registry.paths
        assert mirror.paths[0] == "/v2/hub/ada/tool/manifests/1"
        await hub.pull("ada/tool:2")
    assert hub.registry.paths[0] == "/v2/ada/tool/manifests/2"


async def store_login(hub: Pulls, owner: str | None, secret: str = "secret") -> None:
    owner_id = (await a_user(hub.database, owner)).id if owner else credentials.HUB
    async with hub.database.transaction() as conn:
        await credentials.set_credential(
            conn, owner_id, hub.registry.host, username="robot", secret=secret
        )


async def test_a_private_image_is_pulled_with_the_credentials_of_the_owner(hub: Pulls) -> None:
    hub.registry.wants_token, hub.registry.login = True, ("robot", "secret")
    digest = hub.registry.add_image("1", BASE)
    await store_login(hub, "ada")
    assert await hub.pull() == digest
    with pytest.raises(CannotRun, match="has no public image"):
        await hub.pull(owner="bob")


async def test_the_credentials_of_the_hub_serve_everybody(hub: Pulls) -> None:
    hub.registry.wants_token, hub.registry.login = True, ("robot", "secret")
    digest = hub.registry.add_image("1", BASE)
    await store_login(hub, None)
    assert await hub.pull(owner="bob") == digest


async def test_wrong_credentials_are_named_and_their_secret_is_not(hub: Pulls) -> None:
    hub.registry.wants_token, hub.registry.login = True, ("robot", "secret")
    hub.registry.add_image("1", BASE)
    await store_login(hub, "ada", "another")
    assert await hub.refusal() == (
        "HOST does not give ada/tool:1 to robot: check the name, or replace the credentials that "
        "are stored for HOST."
    )


async def test_who_knows_the_digest_of_a_private_layer_is_not_given_it(hub: Pulls) -> None:
    hub.registry.wants_token, hub.registry.login = True, ("robot", "secret")
    hub.registry.add_image("1", TOP)
    await store_login(hub, "ada")
    await hub.pull()
    layer = hub.registry.add_blob(TOP)
    async with remote_registry() as evil:
        described = evil.add_blob(json.dumps(HERE).encode())
        evil.add_manifest("1", {"config": described, "layers": [layer]}, MANIFEST)
        hub.allow(registries=(RegistryRule(pattern=evil.host, is_plain=True),))
        puller = ImagePuller(hub.database)
        with pytest.raises(CannotRun, match="has no image"):
            await puller.pull(
                await hub.job("bob"), f"{evil.host}/x:1", is_space=False, log_path=hub.log_path
            )
        await puller.close()
        assert len(evil.requests_for(str(layer["digest"]))) == 1
