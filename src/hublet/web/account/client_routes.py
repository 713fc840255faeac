"""HTTP for what programs of a person connect with: SSH keys, and MCP tools."""

import json

from fastapi import Response

from hublet.accounts.settings import ssh_keys, store
from hublet.accounts.settings.schemas import AddSshKey
from hublet.accounts.settings.ssh_keys import MAX_LENGTH
from hublet.core.database import Reader
from hublet.core.errors import HubError, NotFound
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.mcp import service as mcp
from hublet.mcp.records import INFO_BY_NAME, MCP_PATH, SWITCHED_TOOLS
from hublet.mcp.schemas import UpdateMcpTools
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, RepoFilter
from hublet.repos.records import RepoType
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_KEYS = "/settings/keys"
_MCP = "/settings/mcp"
# Own spaces that the form of the tools offers.
_MOST_SPACES = 50


@router.get(_KEYS)
async def get_keys_page(visit: SignedInVisit) -> Response:
    return await _show_keys(visit, {})


@router.post(_KEYS)
async def add_key(visit: FreshVisit, form: FormFields) -> Response:
    visit.check(form, _KEYS)
    try:
        request = read_as(AddSshKey, title=form.get("title", "").strip(), key=form.get("key", ""))
        async with visit.database.transaction() as conn:
            await ssh_keys.add(
                conn, user_id=visit.person.user_id, title=request.title, text=request.key
            )
    except REFUSALS as error:
        return await _show_keys(visit, dict(form), problem=error)
    return go_to(visit, _KEYS, toast="The key is there.")


@router.post(f"{_KEYS}/{{key_id}}/remove")
async def remove_key(visit: SignedInVisit, key_id: str, form: FormFields) -> Response:
    visit.check(form, _KEYS)
    async with visit.database.transaction() as conn:
        await ssh_keys.remove(conn, key_id, user_id=visit.person.user_id)
    return go_to(visit, _KEYS, toast="Nobody can log in with the key any more.")


@router.get(_MCP)
async def get_mcp_page(visit: SignedInVisit) -> Response:
    return await _show_mcp(visit)


@router.post(_MCP)
async def change_mcp_tools(visit: SignedInVisit, form: FormFields) -> Response:
    """Choose tools: built-in ones and spaces, from the lists or by name."""
    visit.check(form, _MCP)
    built_in = [*form.getlist("tool"), *form.get("tools", "").replace(",", " ").split()]
    spaces = [*form.getlist("space"), *form.get("other", "").replace(",", " ").split()]
    try:
        request = read_as(
            UpdateMcpTools, builtInTools=list(dict.fromkeys(built_in)), spaceTools=spaces
        )
        async with visit.database.transaction() as conn:
            await mcp.update(conn, visit.person, request)
    except (*REFUSALS, NotFound) as error:
        return await _show_mcp(visit, form, problem=error)
    return go_to(visit, _MCP, toast="The tools are saved.")


async def _show_keys(
    visit: PageVisit, typed: dict[str, str], *, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_KEYS)
        keys = await store.list_ssh_keys(conn, user_id=visit.person.user_id)
    return await render(
        visit,
        "account/keys.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_KEYS),
        keys=keys,
        longest=MAX_LENGTH,
        typed=typed,
        problem=None if problem is None else problem.message,
    )


async def _show_mcp(
    visit: PageVisit, form: FormFields | None = None, *, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_MCP)
        tools = await mcp.tools_of(conn, visit.person)
        own = await _list_own_spaces(conn, visit)
    chosen = [space.full_name for space in tools.spaces]
    switched = tools.built_in if form is None else tuple(form.getlist("tool"))
    unknown = " ".join(name for name in tools.built_in if name not in INFO_BY_NAME)
    return await render(
        visit,
        "account/mcp.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_MCP),
        built_in=SWITCHED_TOOLS,
        switched=switched,
        tools=unknown if form is None else form.get("tools", ""),
        spaces=list(dict.fromkeys([*chosen, *own])),
        chosen=chosen if form is None else form.getlist("space"),
        other="" if form is None else form.get("other", ""),
        configurations=_configurations(f"{visit.settings.base_url}{MCP_PATH}"),
        problem=None if problem is None else problem.message,
    )


def _configurations(address: str) -> list[tuple[str, str, str]]:
    """Return how assistants are told of the server: a title, where it goes, and the text."""
    servers = {"hublet": {"url": f"{address}?login"}}
    typed = {"hublet": {"type": "http", "url": f"{address}?login"}}
    return [
        (
            "Claude Code",
            "in a terminal",
            f'claude mcp add --transport http hublet "{address}?login"',
        ),
        ("VS Code", "in .vscode/mcp.json", json.dumps({"servers": typed}, indent=2)),
        ("Cursor", "in .cursor/mcp.json", json.dumps({"mcpServers": servers}, indent=2)),
        (
            "With a token",
            "for what cannot sign in, and for notifications",
            f'claude mcp add --transport http hublet {address} --header "Authorization: Bearer $HF_TOKEN"',
        ),
    ]


async def _list_own_spaces(conn: Reader, visit: PageVisit) -> list[str]:
    found = await lists.list_repos(
        conn,
        visit.person,
        RepoFilter(type=RepoType.space, author=visit.person.user_name),
        order=ListOrder(),
        limit=_MOST_SPACES,
    )
    return [space.full_name for space in found]
