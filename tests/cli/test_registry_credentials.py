"""Credentials at other registries by the command: whose they are, and that no output has the secret."""

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.registry import credentials

SECRET = "s3cr3t-value"


@pytest.fixture
def owners(hublet: Hublet) -> None:
    hublet("user", "add", "ada", "--password", "correct horse")
    hublet("org", "add", "navy", "--owner", "ada")


def hosts(hublet: Hublet, *owner: str) -> list[str]:
    return [each["host"] for each in hublet("registry-credentials", "list", *owner, "--json").json]


def test_each_owner_and_the_hub_have_their_own(hublet: Hublet, owners: None) -> None:
    for host, owner in (("a.io", ["--owner", "ada"]), ("n.io", ["--owner", "navy"]), ("h.io", [])):
        done = hublet(
            "registry-credentials", "set", host, "--username", "robot", *owner, stdin=f"{SECRET}\n"
        )
        assert (done.code, SECRET in done.out + done.err) == (0, False)

    assert hosts(hublet, "--owner", "ada") == ["a.io"]
    assert hosts(hublet, "--owner", "navy") == ["n.io"]
    assert hosts(hublet) == ["h.io"]
    assert SECRET not in hublet("registry-credentials", "list", "--owner", "navy").out


def test_what_was_read_from_standard_input_is_what_jobs_use(
    hublet: Hublet, settings: Settings, owners: None
) -> None:
    command = ("registry-credentials", "set", "index.docker.io", "--username", "robot")
    done = hublet(*command, "--owner", "navy", stdin=f"{SECRET}\r\nmore\n")

    async def find(conn: Connection) -> tuple[str, str] | None:
        owner: str = await conn.fetch_value("SELECT id FROM organizations WHERE name = 'navy'")
        return await credentials.find_login(conn, owner, "docker.io")

    assert done.err == "Jobs of navy log in to docker.io as robot.\n"
    assert in_hub(settings, find) == ("robot", SECRET)


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (("set", "a b", "--username", "x"), SECRET, "host: it is not valid"),
        (("set", "a.io", "--username", "x:y"), SECRET, "username: it is not valid"),
        (("set", "a.io", "--username", "x"), "", "secret: it is not valid"),
        (("set", "a.io", "--username", "x", "--owner", "nobody"), SECRET, "nobody"),
        (("remove", "a.io"), "", "There are no credentials for a.io."),
    ],
)
def test_what_is_refused_is_said_and_nothing_is_stored(
    hublet: Hublet, owners: None, arguments: tuple[str, ...], stdin: str, sentence: str
) -> None:
    done = hublet("registry-credentials", *arguments, stdin=stdin)

    assert done.code == 1
    assert sentence in done.err
    assert SECRET not in done.out + done.err
    assert hosts(hublet) == []


def test_a_login_is_removed(hublet: Hublet, owners: None) -> None:
    hublet("registry-credentials", "set", "a.io", "--username", "x", stdin=SECRET)

    done = hublet("registry-credentials", "remove", "a.io")

    assert (done.code, done.err) == (0, "Removed the credentials for a.io.\n")
    assert hosts(hublet) == []
