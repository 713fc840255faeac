"""Wire shapes of the MCP tools of a user."""

import re
from typing import Annotated, Self

from pydantic import MISSING, AfterValidator, Field

from hublet.core.schema import ObjectId, Schema
from hublet.mcp.records import ChosenTools
from hublet.repos.cards import emoji_of
from hublet.repos.records import Repo

MAX_TOOLS = 100

_NOT_IN_A_DOMAIN = re.compile("[^a-z0-9]")


def subdomain_of(space: Repo) -> str:
    """Return the label in front of the domain of spaces, as the public hub writes it."""
    return _NOT_IN_A_DOMAIN.sub("-", f"{space.owner_name}-{space.name}".lower())


def _reject_duplicates(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("each tool is to be named once")
    return names


# The characters that the protocol allows in the name of a tool.
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=128)]
ToolNames = Annotated[
    list[ToolName],
    Field(max_length=MAX_TOOLS, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_reject_duplicates),
]
SpaceName = Annotated[
    str, Field(pattern="^[^/]+/[^/]+$", max_length=200, description="In the form owner/name.")
]


class SpaceTool(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    name: Annotated[str, Field(description="In the form owner/name.")]
    emoji: str
    subdomain: str

    @classmethod
    def of(cls, space: Repo) -> Self:
        return cls.model_validate(
            {
                "_id": space.id,
                "name": space.full_name,
                "emoji": emoji_of(space),
                "subdomain": subdomain_of(space),
            }
        )


class McpTools(Schema):
    builtInTools: list[str]
    spaceTools: list[SpaceTool]

    @classmethod
    def of(cls, tools: ChosenTools) -> Self:
        spaces = [SpaceTool.of(space) for space in tools.spaces]
        return cls(builtInTools=list(tools.built_in), spaceTools=spaces)


class UpdateMcpTools(Schema):
    builtInTools: ToolNames | MISSING = MISSING
    spaceTools: Annotated[list[SpaceName], Field(max_length=MAX_TOOLS)] | MISSING = MISSING
