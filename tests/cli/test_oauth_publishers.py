"""Commands for the trusted publishers of a repository."""

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.records import Owner, OwnerType
from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.repos import store
from hublet.repos.records import Repo, RepoType, Visibility


@pytest.fixture
def engine(hublet: Hublet, settings: Settings) -> str:
    """A dataset of ada's."""
    hublet("user", "add", "ada", "--password", "correct horse")

    async def add(conn: Connection) -> None:
        ada, at = await accounts.get_user(conn, "ada"), clock.now()
        owner = Owner(id=ada.id, name="ada", type=OwnerType.user)
        repo = Repo(
            id=new_object_id(), type=RepoType.dataset, owner=owner, name="engine",
            visibility=Visibility.public, creator_id=ada.id, created_at=at, updated_at=at,
        )  # fmt: skip
        await store.add(conn, repo)

    in_hub(settings, add)
    return "datasets/ada/engine"


def test_a_publisher_is_added_listed_and_removed(hublet: Hublet, engine: str) -> None:
    claims = ("repository=acme/engine", "branch=main")

    added = hublet("oauth", "publisher", "add", engine, "github", *claims)
    listed = hublet("oauth", "publisher", "list", engine, "--json").json

    assert added.code == 0, added.err
    [publisher] = listed
    assert publisher["id"] == added.out.strip()
    assert publisher["claims"] == {"repository": "acme/engine", "branch": "main"}
    assert publisher["createdBy"] == "operator"
    assert hublet("oauth", "publisher", "remove", engine, publisher["id"]).code == 0
    assert hublet("oauth", "publisher", "list", engine, "--quiet").out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("add", "ada", "github", "repository=a/b"), "REPO must look like owner/name"),
        (("add", "ada/none", "github", "repository=a/b"), "Repository not found"),
        (("add", "datasets/ada/engine", "travis", "a=b"), "travis is no provider."),
        (("add", "datasets/ada/engine", "github", "branch"), "claims.repository is needed"),
        (("remove", "datasets/ada/engine", "0" * 24), "has no trusted publisher"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_a_command_that_breaks_a_rule_is_refused(
    hublet: Hublet, arguments: tuple[str, ...], sentence: str
) -> None:
    refused = hublet("oauth", "publisher", *arguments)

    assert refused.code != 0
    assert sentence in refused.err
