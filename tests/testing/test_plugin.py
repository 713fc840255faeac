"""The plugin as a project sees it that has just installed it: each test runs a pytest of its own."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from processes import clean_environment

# A project of its own: none of our settings, none of our other plugins.
_INI = "[pytest]\naddopts = -q -p no:cacheprovider -p no:asyncio\n"

_PUSH = """
    from huggingface_hub import HfApi, constants

    def test_push(hub):
        assert constants.ENDPOINT == hub.url
        api = HfApi(token=hub.user("ada").token)
        assert api.create_repo("engine").repo_id == "ada/engine"
"""


def write(folder: Path, **files: str) -> None:
    (folder / "pytest.ini").write_text(_INI + files.pop("ini", ""))
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


def run(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=clean_environment({"TMPDIR": str(folder), **(variables or {})}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("hublet-*"))


def test_a_test_needs_nothing_but_the_fixture(tmp_path: Path) -> None:
    write(tmp_path, test_push=_PUSH, conftest="import huggingface_hub.constants")

    ended = run(tmp_path, variables={"HF_ENDPOINT": "https://example.com", "HF_TOKEN": "hf_mine"})

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert left_in(tmp_path) == []


def test_modules_of_a_project_are_not_taken_for_the_librarys(tmp_path: Path) -> None:
    write(tmp_path, test_push=_PUSH, secrets="raise ImportError('This is the project.')")
    # `python -m pytest` would put the folder first for pytest itself, too.
    safely = [sys.executable, "-P", "-m", "pytest"]

    ended = subprocess.run(
        safely, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_conftest_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, test_push=_PUSH, conftest="raise RuntimeError('The boiler burst.')")

    ended = run(tmp_path)

    assert (ended.returncode, "The boiler burst." in ended.stderr) == (4, True)
    assert left_in(tmp_path) == []


def test_the_environment_is_of_the_tests_and_put_back(tmp_path: Path) -> None:
    write(
        tmp_path,
        conftest="""
            import atexit, os

            @atexit.register
            def tell():
                print("AFTER", os.environ.get("HF_ENDPOINT"), os.environ.get("HF_TOKEN"))
        """,
        test_it="""
            import os

            def test_it():
                assert os.environ["HF_ENDPOINT"].startswith("http://127.0.0.1:")
                assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
                assert os.environ["NO_PROXY"] == "corp.example,127.0.0.1,localhost"
                assert "HF_TOKEN" not in os.environ
                assert "HUGGINGFACE_HUB_CACHE" not in os.environ
                assert "TRANSFORMERS_OFFLINE" not in os.environ
                assert os.path.isdir(os.environ["HF_HOME"])
        """,
    )
    own = {"HF_ENDPOINT": "https://example.com", "HF_TOKEN": "hf_mine", "NO_PROXY": "corp.example"}
    own |= {"HUGGINGFACE_HUB_CACHE": "/of/my/own", "TRANSFORMERS_OFFLINE": "1"}

    ended = run(tmp_path, variables=own)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "AFTER https://example.com hf_mine" in ended.stdout
    assert left_in(tmp_path) == []


def test_without_hublet_env_nothing_is_set(tmp_path: Path) -> None:
    test = """
        import os

        def test_it(hub):
            assert os.environ["HF_ENDPOINT"] == "https://example.com"
            assert hub.user("ada").name == "ada"
    """
    write(tmp_path, ini="hublet_env = false\n", test_it=test)

    ended = run(tmp_path, variables={"HF_ENDPOINT": "https://example.com"})

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_client_that_came_too_early_is_told_of(tmp_path: Path) -> None:
    write(tmp_path, test_push=_PUSH, early="import huggingface_hub.constants")

    ended = run(tmp_path, "-p", "early", variables={"PYTHONPATH": str(tmp_path)})

    assert ended.returncode == 1
    assert "huggingface_hub was imported before the tests' hub had an address" in ended.stdout
    assert "talk to https://huggingface.co" in ended.stdout


def test_settings_come_from_the_ini_and_a_fixture_may_change_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        ini="hublet_settings =\n    tokens.prefix = acme_\n",
        conftest="""
            import pytest

            @pytest.fixture(scope="session")
            def hub_settings(hub_settings):
                assert hub_settings == {"tokens.prefix": "acme_"}
                return {"tokens.prefix": "other_"}
        """,
        test_it="""
            def test_it(hub):
                assert hub.user("ada").token.startswith("other_")
        """,
    )

    ended = run(tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_wrong_setting_is_told_in_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, ini="hublet_settings =\n    worker.pol_seconds = 3\n", test_push=_PUSH)

    ended = run(tmp_path)

    assert ended.returncode == 1
    assert "The hub of the tests does not start: worker.pol_seconds" in ended.stdout
    assert "did you mean worker.poll_seconds?" in ended.stdout


def test_a_failed_test_shows_what_the_hub_wrote_during_it(tmp_path: Path) -> None:
    failing = """
        import urllib.request

        def test_first(hub):
            urllib.request.urlopen(f"{hub.url}/healthz?first").close()
            hub.user("first")

        def test_second(hub):
            hub.user("second")
            hub.settle()
            assert not urllib.request.urlopen(f"{hub.url}/readyz").read()
    """
    write(tmp_path, test_it=failing)

    ended = run(tmp_path)

    assert "Log of the hub" in ended.stdout
    shown = ended.stdout.partition("Log of the hub")[2]
    assert "method=POST path=/api/admin/users/second/tokens status=200" in shown
    assert '"event"' not in shown
    assert "/api/admin/users/first/tokens" not in shown


def test_a_login_lasts_until_the_end_of_the_test(tmp_path: Path) -> None:
    test = """
        import os, subprocess, sys

        import pytest
        from huggingface_hub import HfApi, create_repo, whoami
        from huggingface_hub.errors import LocalTokenNotFoundError

        def test_one(hub):
            ada, grace = hub.user("ada"), hub.user("grace")
            assert hub.login(ada) == ada.token
            assert create_repo("engine").repo_id == "ada/engine"
            reader = hub.token(grace, role="read")
            assert hub.login(grace, token=reader) == reader
            assert HfApi().whoami()["name"] == "grace"
            asked = [sys.executable, "-c", "import huggingface_hub as h; print(h.whoami()['name'])"]
            assert subprocess.run(asked, capture_output=True, text=True).stdout == "grace\\n"

        def test_two(hub):
            assert "HF_TOKEN" not in os.environ
            with pytest.raises(LocalTokenNotFoundError):
                whoami()
            hub.login(hub.user("ada"))
            hub.logout()
            assert "HF_TOKEN" not in os.environ
    """
    write(tmp_path, test_it=test)

    ended = run(tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_login_is_refused_where_the_client_talks_to_another_hub(tmp_path: Path) -> None:
    test = """
        import os

        import huggingface_hub.constants
        import pytest
        from hublet.testing import CannotLogIn

        def test_it(hub):
            with pytest.raises(CannotLogIn, match="talks to https://example.com in this process"):
                hub.login(hub.user("ada"))
            assert os.environ["HF_TOKEN"] == "hf_mine"
    """
    write(tmp_path, ini="hublet_env = false\n", test_it=test)

    own = {"HF_ENDPOINT": "https://example.com", "HF_TOKEN": "hf_mine"}
    ended = run(tmp_path, variables=own)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_worker_of_xdist_has_a_hub_of_its_own(tmp_path: Path) -> None:
    test = """
        import pathlib, pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(hub, number, worker_id):
            hub.user("ada")
            pathlib.Path(f"seen-{worker_id}-{hub.url.rpartition(':')[2]}").touch()
    """
    write(tmp_path, test_it=test)

    ended = run(tmp_path, "-n", "2")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    seen = [path.name.split("-") for path in tmp_path.glob("seen-*")]
    assert len({port for _, _, port in seen}) == len({worker for _, worker, _ in seen}) == 2


def test_no_hub_starts_for_tests_that_want_none(tmp_path: Path) -> None:
    test = """
        import os, subprocess

        def test_it():
            listing = ["ps", "-o", "args=", "--ppid", str(os.getpid())]
            listed = subprocess.run(listing, capture_output=True, text=True)
            assert "hublet.testing.child" not in listed.stdout

        def test_hub(hub):
            pass
    """
    write(tmp_path, test_it=test)

    ended = run(tmp_path, "-k", "test_it and not test_hub")

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_hub_ends_when_pytest_is_killed(tmp_path: Path) -> None:
    test = """
        import os, pathlib, time

        def test_it(hub, hub_process):
            pathlib.Path("hub.pid").write_text(f"{hub_process.pid} ")
            # Somebody who keeps our pipes open, as children of tests do.
            if os.fork() == 0:
                time.sleep(120)
                os._exit(0)
            time.sleep(120)
    """
    write(tmp_path, test_it=test)
    note = tmp_path / "hub.pid"
    with subprocess.Popen(
        command(),
        cwd=tmp_path,
        env=clean_environment({"TMPDIR": str(tmp_path)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as pytest_process:
        try:
            assert soon(lambda: note.exists() and note.read_text().endswith(" "))
            os.kill(pytest_process.pid, signal.SIGKILL)
            assert soon(lambda: not _runs(int(note.read_text())))
            assert soon(lambda: not list(tmp_path.glob("hublet-test-*")))
        finally:
            os.killpg(pytest_process.pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(listed.stdout.strip()) and not listed.stdout.startswith(b"Z")


def soon(is_so: Callable[[], bool], *, seconds: float = 90.0) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
