import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hublet.core import config
from hublet.core.config import ConfigurationError, SettingInfo, Settings, load

KEY = "A" * 43
SECRETS = {
    "server.metrics_token": "metrics-hunter2",
    "database.url": "postgresql://hub:hunter2@db/hub",
    "database.listen_url": "postgresql://hub:hunter2@db:6432/hub",
    "database.replica_url": "postgresql://hub:hunter2@replica/hub",
    "keys.ring": f"hunter2:{KEY}",
    "mail.smtp_url": "smtp://hub:hunter2@mail:587",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_file(text: str, path: str = "hublet-data/hublet.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def value_of(settings: Settings, key: str) -> object:
    group, name = key.split(".")
    return getattr(getattr(settings, group), name)


def problems_of(
    overrides: dict[str, object] | None = None, environ: dict[str, str] | None = None
) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(overrides, environ or {})
    return str(caught.value).splitlines()


def test_without_any_source_every_setting_has_its_default() -> None:
    assert load(environ={}) == Settings()


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default() -> None:
    a_file("[server]\nhost = 'file'\nport = 1\n[worker]\nbatch_size = 1")
    environ = {"HUBLET_HOST": "variable", "HUBLET_PORT": "2"}

    settings = load({"server.host": "flag", "server.port": None}, environ)

    assert settings.server.host == "flag"
    assert settings.server.port == 2
    assert settings.worker.batch_size == 1
    assert settings.worker.concurrency == 8


def test_the_process_environment_is_read_when_none_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in os.environ:
        if name.startswith("HUBLET_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HUBLET_PORT", "9000")

    assert load() == Settings(server=config.ServerSettings(port=9000))


def test_the_default_file_is_in_the_data_folder_that_is_in_force() -> None:
    a_file("server.port = 1")
    a_file("server.port = 2", "variable/hublet.toml")
    a_file("server.port = 3", "flag/hublet.toml")
    environ = {"HUBLET_DATA_DIR": "variable"}

    assert load(environ={}).server.port == 1
    assert load(environ=environ).server.port == 2
    assert load({"database.data_dir": Path("flag")}, environ).server.port == 3


def test_a_named_file_is_read_instead_of_the_default_one() -> None:
    a_file("server.port = 1")
    variable = a_file("server.port = 2", "variable.toml")
    flag = a_file("server.port = 3", "flag.toml")
    environ = {"HUBLET_CONFIG": str(variable)}

    assert load(environ=environ).server.port == 2
    assert load({"config": flag}, environ).server.port == 3


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(
            lambda path: None, "cannot be read: No such file or directory", id="it is missing"
        ),
        pytest.param(Path.mkdir, "cannot be read: Is a directory", id="it is a folder"),
        pytest.param(
            lambda path: path.write_text("port = 8000 8001"),
            "is not TOML: Expected newline or end of document after a statement"
            " (at line 1, column 13)",
            id="it is not TOML",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"\xff"),
            "is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
            id="it is not text",
        ),
    ],
)
def test_a_named_file_must_be_readable(make: Callable[[Path], object], problem: str) -> None:
    make(Path("my.toml"))

    assert problems_of({"config": "my.toml"}) == [f"The settings file my.toml {problem}."]


def test_an_error_names_the_setting_its_source_and_the_rule() -> None:
    a_file("[server]\nport = 'seven'")

    assert problems_of({"server.port": -1}, {"HUBLET_PORT": "tcp://10.0.0.1:8000"}) == [
        "server.port, from the variable HUBLET_PORT, must be a whole number from 0 to 65535, not 'tcp://10.0.0.1:8000'.",
        "server.port, from a flag, must be a whole number from 0 to 65535, not -1.",
        "server.port, from hublet-data/hublet.toml:server.port, must be a whole number from 0 to 65535, not 'seven'.",
    ]


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        pytest.param(
            "[server]\nprot = 1", "server.prot|; did you mean server.port?", id="a key of a group"
        ),
        pytest.param("[sever]\nport = 1", "sever.port|; did you mean server.port?", id="a group"),
        pytest.param(
            "[sever]", "sever|; did you mean server.role?", id="a group with nothing in it"
        ),
        pytest.param("port = 1", "port|; did you mean server.port?", id="a key without its group"),
        pytest.param("server = 1", "server|; did you mean server.role?", id="a group without keys"),
        pytest.param("xyzzy = 1", "xyzzy|.", id="a key that is like no other"),
    ],
)
def test_an_unknown_key_in_the_file_is_an_error(toml: str, problem: str) -> None:
    a_file(toml)
    key, _, end = problem.partition("|")

    assert problems_of() == [f"{key}, from hublet-data/hublet.toml:{key}, is not a setting{end}"]


def test_unknown_variables_and_flags_are_errors() -> None:
    environ = {"HUBLET_SERVER_PORT": "1", "HUBLET_TOKENS_PREFIX": "a_", "OTHER_PORT": "1"}

    assert problems_of({"server.prot": 1}, environ) == [
        "HUBLET_SERVER_PORT, from the variable HUBLET_SERVER_PORT, is not a setting; did you mean HUBLET_PORT?",
        "HUBLET_TOKENS_PREFIX, from the variable HUBLET_TOKENS_PREFIX, is not a setting; did you mean HUBLET_TOKEN_PREFIX?",
        "server.prot, from a flag, is not a setting; did you mean server.port?",
    ]


def test_an_empty_group_of_the_file_is_no_error() -> None:
    a_file("[server]\n[mail]")

    assert load(environ={}) == Settings()


def test_the_file_is_known() -> None:
    assert load(environ={}).file is None

    a_file("[server]")

    assert load(environ={}).file == Path("hublet-data/hublet.toml").absolute()


def test_secrets_do_not_show_in_repr() -> None:
    settings = load(SECRETS, {})

    assert [value_of(settings, key) for key in SECRETS] == list(SECRETS.values())
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


@pytest.mark.parametrize("key", [info.toml_key for info in config.describe() if info.secret])
def test_secrets_do_not_show_in_an_error(key: str) -> None:
    for value in ("hunter2 is wrong", ["hunter2"], {"a": "hunter2"}):
        assert "hunter2" not in "\n".join(problems_of({key: value}))


def test_the_settings_that_hold_secrets_are_marked() -> None:
    assert {info.toml_key for info in config.describe() if info.secret} == set(SECRETS)


def test_a_password_in_another_url_does_not_show_in_an_error() -> None:
    [problem] = problems_of({"server.base_url": "http://ada:hunter2@hub"})

    assert problem.endswith("not 'http://ada:***@hub'.")


def test_variables_have_the_names_that_scripts_rely_on() -> None:
    variables = {info.toml_key: info.variable for info in config.describe()}

    assert variables["database.data_dir"] == "HUBLET_DATA_DIR"
    assert variables["database.url"] == "HUBLET_DATABASE_URL"
    assert variables["server.base_url"] == "HUBLET_BASE_URL"
    assert variables["server.test_mode"] == "HUBLET_TEST_MODE"
    assert variables["server.host"] == "HUBLET_HOST"
    assert variables["server.port"] == "HUBLET_PORT"
    assert variables["jobs.domain"] == "HUBLET_JOBS_DOMAIN"
    assert variables["tokens.prefix"] == "HUBLET_TOKEN_PREFIX"
    assert variables["worker.batch_size"] == "HUBLET_WORKER_BATCH_SIZE"


def test_a_setting_is_described_in_words() -> None:
    described = {info.toml_key: info for info in config.describe()}

    assert described["database.url"] == SettingInfo(
        group="database",
        name="url",
        variable="HUBLET_DATABASE_URL",
        toml_key="database.url",
        type="a postgresql:// or sqlite:///path URL, special characters in its password %-encoded",
        default="the file hub.db in the data folder",
        sentence="The database.",
        secret=True,
    )
    defaults = {described[key].default for key in ("server.test_mode", "outgoing.allow")}
    assert defaults == {"false", "empty"}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(environ={}).server.port = 1  # type: ignore[misc]


def test_importing_the_settings_pulls_in_nothing_heavy() -> None:
    code = "import sys; import hublet.core.config; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {"pydantic", "structlog", "msgspec", "fastapi", "asyncio", "email", "tomllib"}
    assert not heavy & set(run.stdout.split())
