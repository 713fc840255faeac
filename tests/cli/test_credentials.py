"""The file in which `hublet login` remembers who one is."""

import json
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from hublet.cli import credentials
from hublet.cli.credentials import Credential, CredentialsError

HOME, WORK = "http://127.0.0.1:8000", "https://hub.example.com"
ADA = Credential(user="ada", token="hf_a", refresh_token="hf_r", expires_at=1_800_000_000)
GRACE = Credential(user="grace", token="hf_g")


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "hublet" / "credentials.json"


def test_nobody_is_known_at_first(file: Path) -> None:
    assert credentials.find(HOME) is None
    assert credentials.find_last_endpoint() is None
    assert not file.parent.exists()


def test_each_hub_has_an_entry_and_the_last_login_counts() -> None:
    credentials.save(WORK, GRACE)
    credentials.save(HOME, ADA)

    assert credentials.find(HOME) == ADA
    assert credentials.find(WORK) == GRACE
    assert credentials.find_last_endpoint() == HOME


def test_a_renewed_token_does_not_change_which_login_was_the_last() -> None:
    credentials.save(WORK, GRACE)
    credentials.save(HOME, ADA)

    credentials.save(WORK, ADA, as_last=False)

    assert credentials.find(WORK) == ADA
    assert credentials.find_last_endpoint() == HOME


def test_after_a_logout_another_hub_is_the_last() -> None:
    credentials.save(WORK, GRACE)
    credentials.save(HOME, ADA)

    credentials.remove(HOME)
    between = credentials.find_last_endpoint()
    credentials.remove(WORK)

    assert between == WORK
    assert credentials.find(HOME) is None
    assert credentials.find_last_endpoint() is None


def test_a_logout_elsewhere_leaves_the_last_one() -> None:
    credentials.save(WORK, GRACE)
    credentials.save(HOME, ADA)

    credentials.remove(WORK)

    assert credentials.find_last_endpoint() == HOME


def test_only_its_owner_can_read_it_whatever_the_shell_allows(file: Path) -> None:
    credentials.save(HOME, ADA)
    credentials.save(WORK, GRACE)

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_reach_is_not_used(file: Path, mode: int) -> None:
    credentials.save(HOME, ADA)
    file.chmod(mode)

    with pytest.raises(CredentialsError, match=f"Others on this machine may read {file}"):
        credentials.find(HOME)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"endpoint": null, "hubs": []}',
        '{"endpoint": null, "hubs": {"http://a": {"token": "hf_a"}}}',
        '{"endpoint": null, "hubs": {"http://a": "hf_a"}}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_told_without_what_is_in_it(file: Path, text: str) -> None:
    credentials.save(HOME, ADA)
    file.write_text(text)

    with pytest.raises(CredentialsError) as told:
        credentials.find(HOME)

    assert str(told.value) == f"{file} is damaged: remove it and log in again."


def test_a_folder_that_cannot_be_made_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "taken"))

    with pytest.raises(CredentialsError, match="cannot be used: Not a directory"):
        credentials.save(HOME, ADA)


def test_a_change_that_fails_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials.save(HOME, ADA)
    before = file.read_text()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CredentialsError, match="cannot be written: No space left on device"):
        credentials.save(WORK, GRACE)

    assert file.read_text() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("named", ["", "relative/folder"])
def test_a_folder_that_is_no_full_path_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", named)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert credentials.path() == tmp_path / ".config" / "hublet" / "credentials.json"


def test_a_secret_is_not_shown_with_its_owner() -> None:
    assert repr(ADA) == "Credential(user='ada', expires_at=1800000000)"


def test_a_command_tells_what_is_wrong_with_the_file(run: Hublet, tmp_path: Path) -> None:
    credentials.save(HOME, ADA)
    file = credentials.path()
    file.chmod(0o644)

    refused = run("whoami")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"hublet: Others on this machine may read {file}. Run `chmod 600")
    assert json.loads(file.read_text())["endpoint"] == HOME
