"""What the doctor says of the way that mails go."""

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest

from hublet.core.config import Settings, load
from hublet.core.config.kinds import FlavorSize, ImageSource, RegistryRule
from hublet.core.sealing import KeyRing
from hublet.doctor import check_sql, checks, database
from hublet.doctor.checks import Finding, FindingStatus, ok, problem, warning
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import rootfs
from hublet.runtime.sandbox import runner
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.storage import s3_store
from mail_servers import mail_server
from runtime.images.remote_registry import remote_registry


def with_server(url: str) -> Settings:
    settings = Settings()
    return replace(settings, mail=replace(settings.mail, smtp_url=url))


async def test_without_a_server_mails_are_files(tmp_path: Path) -> None:
    finding = await checks.check_mail(load({"database.data_dir": tmp_path}, {}))

    assert finding == ok("mail", f"No mail server is set; mails are files in {tmp_path}/mail.")
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_a_server_that_lets_us_in_is_well() -> None:
    async with mail_server(login=True) as server:
        finding = await checks.check_mail(with_server(server.url(login="hublet:p%40ss%2Fword@")))

    assert finding == ok(
        "mail",
        f"smtp://127.0.0.1:{server.port} takes mails from Hublet <hublet@localhost>.",
    )
    assert server.envelopes == []


async def test_a_server_that_refuses_the_login_is_a_problem_and_the_password_stays_untold() -> None:
    async with mail_server(login=True) as server:
        finding = await checks.check_mail(with_server(server.url(login="hublet:wrong@")))

    assert finding == problem(
        "mail",
        f"smtp://127.0.0.1:{server.port} cannot be used: The mail server refused the login (535).",
        "Correct mail.smtp_url or the server; mails wait for three days.",
    )


def on(tmp_path: Path, **settings: object) -> Settings:
    hub = load({"database.data_dir": tmp_path}, {})
    return replace(hub, jobs=replace(hub.jobs, **settings))  # type: ignore[arg-type]


async def test_the_runner_is_named_with_what_it_is(tmp_path: Path) -> None:
    finding = await checks.check_jobs(on(tmp_path, runner="process"))

    assert finding.status is FindingStatus.ok
    assert finding.found.startswith(
        "The runner is process. Jobs run as plain processes of the hub's own user:"
    )


async def test_without_a_runner_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> str:
        raise CannotRun("The sandbox runner needs bubblewrap; install the package bubblewrap.")

    monkeypatch.setattr(runner, "_find_bubblewrap", nothing)

    finding = await checks.check_jobs(on(tmp_path))

    assert finding.status is FindingStatus.warning
    assert finding.found == (
        "No job can be run. The sandbox runner needs bubblewrap; install the package bubblewrap."
    )
    assert finding.advice == "Until then jobs are refused, or wait."


async def test_names_that_are_no_flavors_are_told(tmp_path: Path) -> None:
    sizes = tuple(
        FlavorSize(name=name, cores=1, memory_bytes=2**30) for name in ("cpu-basic", "cpu-huge")
    )
    finding = await checks.check_jobs(on(tmp_path, flavors=sizes, runner="process"))

    assert finding.status is FindingStatus.warning
    assert finding.found == "jobs.flavors has names that are no flavors: cpu-huge."


async def test_a_network_that_jobs_share_with_the_machine_is_a_warning(tmp_path: Path) -> None:
    if not sandbox_works():
        pytest.skip("bubblewrap does not work here")

    finding = await checks.check_jobs(on(tmp_path, runner="sandbox", network="shared"))

    assert finding.status is FindingStatus.warning
    assert finding.found.endswith(
        "They reach everything that this machine does, its loopback included."
    )
    assert finding.advice == "Set jobs.network to outbound, or to none."


def sandbox_works() -> bool:
    return sandbox_runner(Path(), image_map=(), network=True).probe_machine().usable


async def test_why_there_are_no_network_groups_is_said(tmp_path: Path) -> None:
    finding = await checks.check_jobs(on(tmp_path, runner="process"))

    assert finding.found.endswith(
        "There are no network groups. Jobs are plain processes here, which share the network of "
        "the machine."
    )


MAPPED = (
    ImageSource(pattern="python:*", target="/srv/python"),
    ImageSource(pattern="debian", target="host"),
)


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        pytest.param(
            {}, "Every image runs with this machine's own programs; none is mapped.", id="default"
        ),
        pytest.param(
            {"images": MAPPED},
            "python:* is /srv/python, debian is this machine. Others are refused.",
            id="a map counts",
        ),
        pytest.param(
            {"runner": "process"},
            "Every image is this machine: names of images do not matter.",
            id="processes",
        ),
        pytest.param(
            {"registries": (RegistryRule(pattern="ghcr.io"),), "images": MAPPED[:1]},
            "python:* is /srv/python. Others are pulled from this hub and from ghcr.io.",
            id="registries",
        ),
        pytest.param({"runner": "docker"}, "The engine has or pulls them.", id="docker"),
        pytest.param(
            {"runner": "docker", "images": MAPPED[:1]},
            "The engine has or pulls them. python:* is /srv/python.",
            id="docker with a map",
        ),
    ],
)
def test_how_images_run_is_told(tmp_path: Path, jobs: dict[str, object], found: str) -> None:
    assert checks.check_images(on(tmp_path, **jobs)) == checks.ok("images", found)


def test_without_any_image_the_way_out_is_told(tmp_path: Path) -> None:
    assert checks.check_images(on(tmp_path, host_programs=False)) == checks.warning(
        "images",
        "None is mapped, and this machine's own programs are forbidden: jobs are refused.",
        "Map names of images in jobs.images, or set jobs.host_programs to true.",
    )


@pytest.mark.parametrize(
    ("obstacle", "found"),
    [
        (None, "Jobs share the layers of images as an overlay."),
        (
            "they cannot be mounted: not permitted",
            "Jobs share images by hard links, for there is no overlay; they cannot be mounted: not permitted.",
        ),
    ],
)
def test_how_layers_are_shared_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str | None, found: str
) -> None:
    monkeypatch.setattr(rootfs, "find_overlay_obstacle", lambda _folder: obstacle)
    assert checks.check_layers(on(tmp_path)) == [checks.ok("layers", found)]


def test_an_engine_shares_layers_itself_and_nothing_is_tried_without_a_folder(
    tmp_path: Path,
) -> None:
    assert checks.check_layers(on(tmp_path, runner="docker")) == []
    assert checks.check_layers(on(tmp_path / "none")) == []


async def test_which_registries_answer_is_told(tmp_path: Path) -> None:
    async with remote_registry() as registry:
        host = registry.host
        rules = (
            RegistryRule(pattern=host, is_plain=True),
            RegistryRule(pattern="127.0.0.1:1", is_plain=True),
            RegistryRule(pattern="*"),
        )
        answers, refuses = await checks.check_registries(on(tmp_path, registries=rules))

    assert answers == ok("registries", f"{host} answers.")
    assert refuses.status is FindingStatus.warning
    assert refuses.found == "127.0.0.1:1 does not answer: 127.0.0.1:1 refused the connection."


NOW = datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC)


def settings(**server: object) -> Settings:
    return load({f"server.{name}": value for name, value in server.items()}, {})


@pytest.mark.parametrize(
    ("host", "url", "status"),
    [
        pytest.param("127.0.0.1", None, "ok", id="for this machine alone"),
        pytest.param("localhost", None, "ok", id="by its name"),
        pytest.param("::1", None, "ok", id="in the new protocol"),
        pytest.param("0.0.0.0", None, "warning", id="for everybody, without a base URL"),
        pytest.param("::", None, "warning", id="the same in the new protocol"),
        pytest.param("hub.example.com", None, "warning", id="under a public name"),
        pytest.param("0.0.0.0", "http://hub.example.com", "warning", id="without TLS"),
        pytest.param("0.0.0.0", "https://hub.example.com", "ok", id="behind TLS"),
        pytest.param("127.0.0.1", "http://hub.example.com", "ok", id="behind a proxy of its own"),
    ],
)
def test_a_public_hub_needs_https(host: str, url: str | None, status: str) -> None:
    finding = checks.check_base_url(settings(host=host, base_url=url))

    assert finding.status == status
    assert (finding.advice is None) == (status == "ok")


@pytest.mark.parametrize(
    ("networks", "status"),
    [
        pytest.param([], "ok", id="nothing"),
        pytest.param(["10.0.0.0/8", "fc00::/7", "192.168.1.7/32"], "ok", id="private networks"),
        pytest.param(["0.0.0.0/0"], "warning", id="everything"),
        pytest.param(["10.0.0.0/8", "::/0"], "warning", id="everything in the new protocol"),
        pytest.param(["0.0.0.0/1", "128.0.0.0/1"], "warning", id="everything in two halves"),
    ],
)
def test_an_allow_list_that_opens_everything_is_a_warning(networks: list[str], status: str) -> None:
    allow = tuple(map(ip_network, networks))

    finding = checks.check_outgoing(
        replace(Settings(), outgoing=replace(Settings().outgoing, allow=allow))
    )

    assert finding.status == status
    assert all(network in finding.found for network in networks)


def test_test_mode_is_a_warning() -> None:
    finding = checks.check_outgoing(settings(test_mode=True))

    assert finding == warning(
        "outgoing",
        "Test mode lets webhooks reach this machine itself.",
        "Never use test mode for data that matters.",
    )


def test_the_sources_of_settings_are_named_without_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hublet.toml").write_text("")
    monkeypatch.setenv("HUBLET_PORT", "9000")
    monkeypatch.setenv("HUBLET_SERVER_METRICS_TOKEN", "s3cret")

    finding = checks.check_sources(load({"database.data_dir": tmp_path}))

    assert finding == ok(
        "settings",
        f"They come from {tmp_path}/hublet.toml, HUBLET_PORT, HUBLET_SERVER_METRICS_TOKEN, flags "
        "and defaults.",
    )


def test_a_named_settings_file_comes_before_the_one_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hublet.toml").write_text("")
    (tmp_path / "flag.toml").write_text("")
    (tmp_path / "variable.toml").write_text("")
    monkeypatch.setenv("HUBLET_CONFIG", str(tmp_path / "variable.toml"))
    folder = {"database.data_dir": tmp_path}

    by_variable = checks.check_sources(load(folder))
    by_flag = checks.check_sources(load({**folder, "config": tmp_path / "flag.toml"}))

    assert by_variable.found == f"They come from {tmp_path}/variable.toml, flags and defaults."
    assert by_flag.found == f"They come from {tmp_path}/flag.toml, flags and defaults."


@pytest.mark.parametrize(
    ("now", "newest", "test_mode", "status"),
    [
        pytest.param(NOW, None, False, "ok", id="no row to compare with"),
        pytest.param(NOW, NOW - timedelta(days=9), False, "ok", id="rows of the past"),
        pytest.param(NOW, NOW + timedelta(seconds=60), False, "ok", id="clocks differ a little"),
        pytest.param(NOW, NOW + timedelta(seconds=61), False, "problem", id="it went back"),
        pytest.param(NOW, NOW + timedelta(days=1), True, "warning", id="test mode moved it"),
        pytest.param(NOW, None, True, "warning", id="test mode may move it"),
        pytest.param(NOW.replace(year=1970), None, False, "problem", id="it was never set"),
        pytest.param(NOW.replace(year=2100), None, True, "problem", id="a far future"),
    ],
)
def test_the_clock_is_judged(
    now: datetime, newest: datetime | None, *, test_mode: bool, status: str
) -> None:
    finding = checks.check_clock(now=now, newest=newest, test_mode=test_mode)

    assert finding.status == status
    assert f"{now:%Y-%m-%d}" in finding.found


@pytest.mark.parametrize(
    ("free", "status"),
    [
        pytest.param(99_999_999, "problem", id="nothing left"),
        pytest.param(100_000_000, "warning", id="a little left"),
        pytest.param(999_999_999, "warning", id="nearly enough"),
        pytest.param(1_000_000_000, "ok", id="enough"),
    ],
)
def test_room_on_the_disk_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": free}))

    assert checks.check_folder(tmp_path).status == status


def test_a_folder_open_to_others_is_a_warning(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)

    assert checks.check_folder(tmp_path) == warning(
        "data folder",
        f"{tmp_path} is open to other users (mode 0750).",
        f"The next hublet serve closes it. Or run: chmod 700 {tmp_path}",
    )


def in_folder(path: Path, ring: str | None = None) -> Settings:
    changes = {"database.data_dir": path, "keys.ring": ring}
    return load(changes, {})


@pytest.mark.parametrize(
    ("content", "mode", "finding"),
    [
        pytest.param(
            None,
            0,
            warning("keys", "There is no {}.", "The first hublet serve makes it."),
            id="no file yet",
        ),
        pytest.param(
            "nonsense",
            0o600,
            problem(
                "keys",
                "The key ring {} is broken. Entry 1 of the key ring is not `id:` and 32 bytes in "
                "base64url.",
                "No token can be checked until it is mended.",
            ),
            id="a broken file",
        ),
        pytest.param(
            "a:" + "A" * 43,
            0o640,
            problem(
                "keys",
                "The key ring {} is open to others than its owner. Run: chmod 600 {}",
                "No token can be checked until it is mended.",
            ),
            id="an open file",
        ),
        pytest.param("a:" + "A" * 43, 0o600, ok("keys", "1 key in {}."), id="a good file"),
    ],
)
def test_the_key_file_is_judged(
    tmp_path: Path, content: str | None, mode: int, finding: Finding
) -> None:
    path = tmp_path / "secret.keys"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    where = in_folder(tmp_path)

    judged = database.check_keys_alone(where, database.find_ring(where))

    assert judged == replace(finding, found=finding.found.replace("{}", str(path)))
    assert path.exists() == (content is not None)


def test_keys_may_come_from_a_setting(tmp_path: Path) -> None:
    where = in_folder(tmp_path, ring=f"a:{'A' * 43},b:{'B' * 42}A")

    ring = database.find_ring(where)

    assert isinstance(ring, KeyRing)
    assert database.check_keys_alone(where, ring) == ok("keys", "2 keys in the setting keys.ring.")


def test_a_machine_without_git_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert checks.check_git() == warning(
        "git",
        "It is not installed: clones and pushes are answered with 503.",
        "Install git, and restart the hub.",
    )


def test_a_git_that_does_not_run_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    finding = checks.check_git()

    assert (finding.check, finding.status) == ("git", "problem")


def test_a_bucket_that_does_not_answer_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(s3_store, "_PROBE_SECONDS", 1)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    url = "s3://bucket/prefix?endpoint=http://127.0.0.1:9"
    settings = load({"storage.url": url, "database.data_dir": tmp_path}, {})

    [finding] = checks.check_store(settings)
    assert finding == problem(
        "object storage",
        "The object storage at 127.0.0.1:9 does not answer as it should (no answer): see that it "
        "runs, and that storage.url is right.",
        "Until then nothing can be uploaded or downloaded.",
    )


def test_without_the_extra_a_bucket_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "hublet.storage.s3_store", None)
    settings = load({"storage.url": "s3://bucket", "database.data_dir": tmp_path}, {})

    [finding] = checks.check_store(settings)
    assert "pip install 'hublet[s3]'" in finding.found


async def test_it_says_what_holds_queries_in(tmp_path: Path) -> None:
    settings = on(tmp_path)
    process = replace(settings, sql=replace(settings.sql, sandbox="process"))

    [finding] = await check_sql(process)

    assert (finding.check, finding.status) == ("sql", FindingStatus.warning)
    assert finding.found.endswith("The reason: sql.sandbox is process.")


async def test_a_hub_without_duckdb_has_no_queries_to_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.sql.child.find_spec", lambda _: None)

    assert await check_sql(on(tmp_path)) == []
