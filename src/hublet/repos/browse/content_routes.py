"""HTTP for what the content of repositories says: leaderboards of datasets, and views of notebooks."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Query, Request

from hublet.accounts.organizations.store import find_accounts
from hublet.core.errors import InvalidRequest
from hublet.core.http import Db, ReadConn, Router
from hublet.repos import evaluations
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo, raw_url_of
from hublet.repos.browse import downloads, lists, revisions
from hublet.repos.browse.auth import IN_REVISION, revision_and_path
from hublet.repos.browse.records import LeaderboardQuery
from hublet.repos.records import RepoAddress, RepoType, Right
from hublet.repos.schemas import LeaderboardEntry, NotebookView, SafetensorsMetadata
from hublet.tokens.auth import MaybeCaller

router = Router(tags=GIT_TAGS, responses=MOVED)
leaderboards_router = Router(tags=["datasets"], responses=MOVED)


async def _dataset(request: Request, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=RepoType.dataset, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


async def _leaderboard_query(
    task_id: Annotated[
        str,
        Query(max_length=200, description="Without it, the task with the results of most models."),
    ] = "",
    max_params: Annotated[
        str, Query(max_length=40, description="Only models of so many parameters, such as 7B.")
    ] = "",
    *,
    base_model: Annotated[
        bool, Query(description="False: also models that were made from another one.")
    ] = True,
) -> LeaderboardQuery:
    return LeaderboardQuery(
        task_id=task_id,
        max_parameters=evaluations.read_parameter_count(max_params) if max_params else None,
        only_roots=base_model,
    )


@leaderboards_router.get("/api/datasets/{namespace:owner}/{name}/leaderboard")
async def get_dataset_leaderboard(
    conn: ReadConn,
    caller: MaybeCaller,
    address: Annotated[RepoAddress, Depends(_dataset)],
    query: Annotated[LeaderboardQuery, Depends(_leaderboard_query)],
) -> list[LeaderboardEntry]:
    """Rank the models that state a result for a task of this dataset, of those that you may see.

    Results are those of `.eval_results/*.yaml` and of `model-index` in the card of a model; there a
    task is the kind of task with the metric, as in `text-classification:accuracy`.
    """
    dataset = await repos.get(conn, caller, address, Right.see)
    ranked = await lists.list_leaderboard(conn, caller, dataset, query)
    owners = await find_accounts(conn, {each.best.model.owner_id for each in ranked})
    base_url = conn.hub.settings.base_url
    return [
        LeaderboardEntry.of(each, owners[each.best.model.owner_id], base_url=base_url)
        for each in ranked
    ]


@router.get(f"{GIT_REPO}/notebook{IN_REVISION}")
async def get_notebook_view(
    request: Request, database: Db, caller: MaybeCaller, address: GitRepo, rest: str
) -> NotebookView:
    """Get the address of the page that shows a notebook, at the commit that the revision means now."""
    name, path = revision_and_path(request, rest)
    revision = await revisions.get_revision(database, caller, address, name, right=Right.read)
    file = await downloads.get_raw_file(revision, path)
    if not path.lower().endswith(".ipynb"):
        raise InvalidRequest(f"path: {path} is no notebook, whose name would end with .ipynb.")
    base_url, repo = database.hub.settings.base_url, revision.repo
    page = f"{repo.type.prefix}{repo.full_name}/blob/{file.commit}/{path}"
    return NotebookView(url=f"{base_url}/{quote(page)}")


@router.get(f"{GIT_REPO}/safetensors-metadata{IN_REVISION}")
async def get_safetensors_metadata(
    request: Request, database: Db, caller: MaybeCaller, address: GitRepo, rest: str
) -> SafetensorsMetadata:
    """Get the tensors of a safetensors file, or of all files that `….safetensors.index.json` names.

    The path is the revision and, behind it, the file; slashes within a revision are `%2F`.
    """
    name, path = revision_and_path(request, rest)
    if address.type is not RepoType.model:
        raise InvalidRequest("Only models have metadata of safetensors here.")
    revision = await revisions.get_revision(database, caller, address, name, right=Right.read)
    return SafetensorsMetadata.model_validate(
        await downloads.describe_safetensors(database, revision, path)
    )
