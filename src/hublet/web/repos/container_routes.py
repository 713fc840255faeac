"""HTTP for containers in the browser: tags, images with their layers, deletion of a tag, retention."""

from typing import Annotated

from fastapi import Query, Response

from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.registry import catalog, collection, service
from hublet.registry.errors import InvalidRetention
from hublet.registry.records import ImageKey, RetentionRule
from hublet.repos import service as repos
from hublet.repos.auth import BUCKET_PAGE, FilesRepo
from hublet.repos.records import Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import go_to, render
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, get_head, path_of
from hublet.web.repos.container_views import ALL_IMAGES, ROWS, image_page, image_path, tags_page

router = PageRouter()

_CONTAINER = BUCKET_PAGE.replace("buckets", "containers")


@router.get(_CONTAINER)
async def get_container_page(
    visit: Visit,
    address: FilesRepo,
    image: Annotated[str, Query(max_length=255)] = ALL_IMAGES,
    search: Annotated[str, Query(max_length=128)] = "",
    after: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Show the tags of a container, those pushed last first."""
    chosen = None if image == ALL_IMAGES else image
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.card, right=Right.read)
        images = await catalog.list_images(conn, head.repo)
    views = await catalog.list_tags(
        visit.database, head.repo, image=chosen, search=search, after=after, limit=ROWS + 1
    )
    page = tags_page(
        head.repo,
        views,
        images=images,
        image=chosen,
        search=search,
        base_url=visit.hub.settings.base_url,
    )
    return await render(visit, "containers/tags.html", frame=head.frame, head=head, page=page)


@router.get(f"{_CONTAINER}/tags/{{rest:path}}")
async def get_image_page(visit: Visit, address: FilesRepo, rest: str) -> Response:
    """Show what a tag or a digest stands for; what comes before it is the path of the image."""
    image, _, reference = rest.rpartition("/")
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.card, right=Right.read)
    view = await catalog.get_manifest(visit.database, head.repo, image=image, reference=reference)
    page = image_page(
        head.repo, head.path, view, reference=reference, base_url=visit.hub.settings.base_url
    )
    return await render(visit, "containers/image.html", frame=head.frame, head=head, page=page)


@router.get(f"{_CONTAINER}/delete-tag/{{rest:path}}")
async def get_tag_deletion_page(visit: SignedInVisit, address: FilesRepo, rest: str) -> Response:
    image, _, tag = rest.rpartition("/")
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.card, right=Right.write)
        found = await catalog.get_tag(conn, head.repo, image=image, name=tag)
    return await render(
        visit,
        "containers/delete.html",
        frame=head.frame,
        head=head,
        tag=found,
        back=image_path(head.path, image, tag),
        action=f"{head.path}/delete-tag/{rest}",
    )


@router.post(f"{_CONTAINER}/delete-tag/{{rest:path}}")
async def delete_tag(
    visit: SignedInVisit, address: FilesRepo, rest: str, form: FormFields
) -> Response:
    """Delete a tag; what it stood for stays as long as other tags or the retention rule keep it."""
    image, _, tag = rest.rpartition("/")
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.person, address, Right.write)
        visit.check(form, f"{PURPOSE} {repo.id}")
        await catalog.get_tag(conn, repo, image=image, name=tag)
        key = ImageKey(repo_id=repo.id, path=image)
        await service.delete_manifest(conn, repo, key, tag, user_id=visit.person.user_id)
    return go_to(visit, path_of(repo), toast=f"The tag {tag} is deleted.")


@router.get(f"{_CONTAINER}/settings/retention")
async def get_retention_page(visit: SignedInVisit, address: FilesRepo) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        rule = await collection.get_retention_rule(conn, head.repo)
    return await _show_retention(
        visit, head, keep_tags=_shown(rule.keep_tags), untagged_days=_shown(rule.untagged_days)
    )


@router.post(f"{_CONTAINER}/settings/retention")
async def set_retention(visit: SignedInVisit, address: FilesRepo, form: FormFields) -> Response:
    """Set which images are kept; an empty field keeps all."""
    keep_tags, untagged_days = form.get("keep_tags", ""), form.get("untagged_days", "")
    try:
        async with visit.database.transaction() as conn:
            repo = await repos.get(conn, visit.person, address, Right.manage)
            visit.check(form, f"{PURPOSE} {repo.id}")
            rule = RetentionRule(
                keep_tags=_number("Tags", keep_tags, most=collection.MAX_KEEP_TAGS),
                untagged_days=_number("Days", untagged_days, most=collection.MAX_UNTAGGED_DAYS),
            )
            await collection.set_retention_rule(conn, visit.person, repo, rule)
    except InvalidRetention as error:
        async with visit.database.read() as conn:
            head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        return await _show_retention(
            visit, head, keep_tags=keep_tags, untagged_days=untagged_days, problem=error
        )
    return go_to(visit, f"{path_of(repo)}/settings/retention", toast="The rule is saved.")


def _number(field: str, text: str, *, most: int) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal():
        raise InvalidRetention(field, most=most)
    return int(text)


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)


async def _show_retention(
    visit: PageVisit,
    head: RepoHead,
    *,
    keep_tags: str,
    untagged_days: str,
    problem: HubError | None = None,
) -> Response:
    return await render(
        visit,
        "containers/retention.html",
        frame=head.frame,
        status=200 if problem is None else 422,
        head=head,
        keep_tags=keep_tags,
        untagged_days=untagged_days,
        most_tags=collection.MAX_KEEP_TAGS,
        most_days=collection.MAX_UNTAGGED_DAYS,
        problem=None if problem is None else problem.message,
    )
