"""Records of MCP: the built-in tools with their scopes and hints, and what a user chose of them."""

from enum import StrEnum

from hublet.core.dataclasses import dataclass
from hublet.repos.records import Repo
from hublet.tokens.records import Scope

# Where assistants find the server, below the hub's address.
MCP_PATH = "/mcp"


class Audience(StrEnum):
    """Who may call a tool."""

    everybody = "everybody"
    # Whose token has the scopes of the tool.
    signed_in = "signed in"
    # Whose token reaches the inbox, which no scope of interface 5.3 does.
    inbox = "inbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """A built-in tool, as settings show it and assistants are told of it."""

    name: str
    title: str
    # For a person who decides whether an assistant may use it.
    summary: str
    # For the assistant itself.
    description: str
    audience: Audience = Audience.signed_in
    scopes: frozenset[Scope] = frozenset()
    # Hints of the protocol.
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    # Whether somebody has it who has chosen nothing.
    is_default: bool = True

    @property
    def is_switched(self) -> bool:
        """Whether a person switches it; who one is can always be asked."""
        return self is not WHO_AM_I


WHO_AM_I = ToolInfo(
    name="hf_whoami",
    title="Who am I",
    summary="Tell whose token is used.",
    description="Tell for whom you act on this hub, in which organizations, and with which scopes.",
    audience=Audience.everybody,
)

SEARCH = ToolInfo(
    name="hub_repo_search",
    title="Search repositories",
    summary="Search models, datasets, spaces and the other repositories that you may see.",
    description=(
        "Search repositories of this hub by words, author, tags, or a mixture; without words it "
        "lists them in the order of `sort`. Shows only what the caller may see."
    ),
    audience=Audience.everybody,
)

DETAILS = ToolInfo(
    name="hub_repo_details",
    title="Repository details",
    summary="Read the card and the list of files of a repository.",
    description=(
        "Show up to 10 repositories: tags, dates, counts, the beginning of the card (README.md) and "
        "the first files. Give `repo_type`, or the hub looks for a model, a dataset, then a space."
    ),
    audience=Audience.everybody,
)

FILES = ToolInfo(
    name="hf_fs",
    title="Files",
    summary="List and read the files of repositories that you may read.",
    description=(
        "Read files by address: hf://[datasets/|spaces/|kernels/|buckets/|containers/]owner/name"
        "[@revision]/path; models have no prefix. `ls` lists a folder, `cat` reads text from "
        "`offset` on, `stat` tells size and type. A slash in a revision is %2F."
    ),
    audience=Audience.everybody,
)

CREATE_REPO = ToolInfo(
    name="create_repo",
    title="Create a repository",
    summary="Create a repository of yours, or of an organization.",
    description=(
        "Create an empty repository at hf://[datasets/|spaces/|…]owner/name; private unless "
        "`private` is false. A space needs an `sdk`."
    ),
    scopes=frozenset({Scope.contribute_repos}),
    read_only=False,
    idempotent=False,
    is_default=False,
)

NOTIFICATIONS = ToolInfo(
    name="hf_notifications",
    title="Notifications",
    summary="List what is in your inbox.",
    description="List the caller's inbox, newest first, 25 to a page, all of it or what is unread.",
    audience=Audience.inbox,
)

MARK_NOTIFICATIONS = ToolInfo(
    name="hf_notifications_mark",
    title="Mark notifications",
    summary="Mark notifications as read, or as unread again.",
    description="Mark threads of the caller's inbox as read, or as unread again, by their ids.",
    audience=Audience.inbox,
    read_only=False,
    is_default=False,
)

DISCUSSIONS = ToolInfo(
    name="hf_discussions",
    title="Discussions",
    summary="Read discussions and pull requests.",
    description=(
        "List the discussions and pull requests of a repository, or read one of them by `num`, "
        "with its comments and, if asked for, the diff of a pull request."
    ),
    audience=Audience.everybody,
)

WRITE_DISCUSSIONS = ToolInfo(
    name="hf_discussions_write",
    title="Write in discussions",
    summary="Open discussions and comment in your name.",
    description="Open a discussion (`title`), or comment on the one with the number `num`.",
    scopes=frozenset({Scope.write_discussions}),
    read_only=False,
    idempotent=False,
    is_default=False,
)

JOBS = ToolInfo(
    name="hf_jobs",
    title="Jobs",
    summary="Run jobs in your name, read what they print, and cancel them.",
    description=(
        "Run a command in a container image (`run`), list jobs (`ps`), show one (`inspect`), read "
        "the end of what it prints (`logs`), wait until it is over (`wait`), or end it (`cancel`)."
    ),
    scopes=frozenset({Scope.jobs}),
    read_only=False,
    destructive=True,
    idempotent=False,
    is_default=False,
)

WEBHOOKS = ToolInfo(
    name="hf_webhooks",
    title="Webhooks",
    summary="List your webhooks and what became of their deliveries.",
    description="List webhooks (`list`), or the newest deliveries of one of them (`activity`).",
    scopes=frozenset({Scope.webhooks}),
)

REPLAY_WEBHOOKS = ToolInfo(
    name="hf_webhooks_replay",
    title="Replay a delivery",
    summary="Send a delivery of a webhook once more.",
    description="Send one delivery of a webhook again, to where the webhook points now.",
    scopes=frozenset({Scope.webhooks}),
    read_only=False,
    idempotent=False,
    is_default=False,
)

TOOL_INFOS: tuple[ToolInfo, ...] = (
    WHO_AM_I,
    SEARCH,
    DETAILS,
    FILES,
    CREATE_REPO,
    DISCUSSIONS,
    WRITE_DISCUSSIONS,
    NOTIFICATIONS,
    MARK_NOTIFICATIONS,
    JOBS,
    WEBHOOKS,
    REPLAY_WEBHOOKS,
)
INFO_BY_NAME = {info.name: info for info in TOOL_INFOS}
SWITCHED_TOOLS = tuple(info for info in TOOL_INFOS if info.is_switched)
# Tools that change nothing; the others are switched on by a person (decision 0080).
DEFAULT_TOOLS = tuple(info.name for info in SWITCHED_TOOLS if info.is_default)
# What an app asks for first; a tool that needs more says so when it is called.
FIRST_SCOPES = frozenset({Scope.openid, Scope.profile, Scope.read_repos})
SUPPORTED_SCOPES = FIRST_SCOPES | {Scope.gated_repos, Scope.read_memberships}.union(
    *(info.scopes for info in TOOL_INFOS)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTools:
    built_in: tuple[str, ...] = ()
    spaces: tuple[Repo, ...] = ()
