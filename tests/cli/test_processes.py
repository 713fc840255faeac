"""Commands beside a real server, and the real command as a script calls it."""

from cli.hublet_command import Hublet
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until


def script(place: Place, *arguments: str) -> str:
    """Run the command as a process of its own and return what it printed."""
    done = run_hublet(*arguments, *place.flags, folder=place.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def works(server: Server, token: str) -> bool:
    with server.client(token) as client:
        return client.get("/api/whoami-v2").status_code == 200


def test_what_a_script_prepares_is_there_when_the_hub_starts(place: Place) -> None:
    script(place, "migrate")
    script(place, "user", "add", "ada", "--email", "ada@example.com", "--password", "correct horse")
    script(place, "org", "add", "acme", "--plan", "team")
    script(place, "org", "member", "add", "acme", "ada", "--role", "admin")
    token = script(place, "token", "create", "ada", "--role", "write", "--name", "script")

    with serving(place) as server, server.client(token.removesuffix("\n")) as client:
        seen = client.get("/api/whoami-v2").json()

    # There was a user, but no administrator yet.
    assert server.user == "admin"
    assert (seen["name"], seen["email"]) == ("ada", "ada@example.com")
    assert seen["auth"]["accessToken"]["displayName"] == "script"
    assert [(each["name"], each["roleInOrg"], each["plan"]) for each in seen["orgs"]] == [
        ("acme", "admin", "team")
    ]


def test_commands_work_while_a_server_runs(run: Hublet, place: Place) -> None:
    with serving(place) as server:
        run("user", "add", "ada", "--password", "correct horse", *place.flags)
        run("token", "create", "ada", "--value", "hf_my-suite", *place.flags)
        created = works(server, "hf_my-suite")
        run("user", "disable", "ada", *place.flags)
        wait_until(lambda: not works(server, "hf_my-suite"), seconds=SOON_SECONDS)
        examined = run("doctor", *place.flags)

    assert created
    assert examined.code == 0, examined.out
