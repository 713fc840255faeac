"""Jobs of a space: its files are there, and what it runs is told by its card."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.runtime.errors import CannotRun
from hublet.runtime.volumes.records import PreparedAttempt
from jobs.jobs_api import BODY, PATH
from people import Headers
from repos.content import put
from repositories import a_repo
from runtime.volumes.mounts import attempt_of, contents, job_of, prepared

DOCKER = (
    "the space ada/demo is made by its Dockerfile, which this hub does not build: "
    "give the job a command"
)
STATIC = "the space ada/demo is static and has nothing to run: give the job a command"


def readme(**card: str) -> bytes:
    lines = "".join(f"{name}: {value}\n" for name, value in card.items())
    return f"---\n{lines}---\n".encode()


async def a_space(
    client: httpx2.AsyncClient, database: Database, who: Headers, created_as: str, **card: str
) -> None:
    repo_id = await a_repo(client, who, "ada/demo", type="space", sdk=created_as, private=True)
    await put(database, repo_id, {"README.md": readme(**card), "app.py": b"print(1)"})


async def run_space(
    client: httpx2.AsyncClient, database: Database, who: Headers, **body: object
) -> tuple[str, PreparedAttempt]:
    asked = {name: value for name, value in BODY.items() if name == "flavor"}
    response = await client.post(PATH, headers=who, json=asked | {"spaceId": "ada/demo"} | body)
    assert response.status_code == 200, response.text
    job = await job_of(database, response.json()["id"])
    return job.id, await prepared(database, job)


@pytest.mark.parametrize(
    ("sdk", "card", "argv"),
    [
        pytest.param("gradio", {}, ("python", "app.py"), id="without a word, app.py"),
        pytest.param(
            "gradio", {"app_file": "src/x.py"}, ("python", "src/x.py"), id="the file of the card"
        ),
        pytest.param("gradio", {"app_file": "[1]"}, ("python", "app.py"), id="no name of a file"),
        pytest.param(
            "streamlit", {}, ("streamlit", "run", "app.py"), id="streamlit has a runner of its own"
        ),
        pytest.param(
            "docker", {"sdk": "gradio"}, ("python", "app.py"), id="the card is newer than the form"
        ),
    ],
)
async def test_a_space_runs_what_its_card_says(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    sdk: str,
    card: dict[str, str],
    argv: tuple[str, ...],
) -> None:
    await a_space(client, database, ada, sdk, **card)

    _, found = await run_space(client, database, ada)

    assert (found.image, found.argv, found.binds) == ("spaces/ada/demo", argv, ())


async def test_an_attempt_has_the_files_as_its_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_space(client, database, ada, "gradio")
    job_id, found = await run_space(client, database, ada, arguments=["--fast"])
    job = await job_of(database, job_id)

    assert found.argv == ("python", "app.py", "--fast")
    assert found.content is not None
    assert found.content == attempt_of(database, job) / "app"
    assert contents(found.content) == {"README.md": readme(), "app.py": b"print(1)"}
    (found.content / "app.py").write_text("print(2)")
    # The same attempt finds what it left, another one what the space has.
    again, other = await prepared(database, job), await prepared(database, job, number=2)
    assert again == found
    assert other.content is not None
    assert contents(found.content)["app.py"] == b"print(2)"
    assert contents(other.content)["app.py"] == b"print(1)"


@pytest.mark.parametrize(
    ("sdk", "sentence"), [pytest.param("docker", DOCKER), pytest.param("static", STATIC)]
)
async def test_what_cannot_be_told_is_refused_and_a_command_helps(
    client: httpx2.AsyncClient, database: Database, ada: Headers, sdk: str, sentence: str
) -> None:
    await a_space(client, database, ada, sdk)

    with pytest.raises(CannotRun) as refused:
        await run_space(client, database, ada)
    _, found = await run_space(client, database, ada, command=["ls"], arguments=["-l"])

    assert str(refused.value) == sentence
    assert found.argv == ("ls", "-l")


async def test_a_space_that_is_gone_is_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_space(client, database, ada, "gradio")
    job_id, _ = await run_space(client, database, ada)
    body = {"type": "space", "name": "demo"}
    deleted = await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)
    assert deleted.status_code == 200

    with pytest.raises(CannotRun) as refused:
        await prepared(database, await job_of(database, job_id), number=2)

    assert str(refused.value) == "spaceId: there is no space ada/demo, or you cannot see it"
