"""Schema of the address of the inbox: the filters of the interface, a search, a grouping."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode

from pydantic import ConfigDict, Field, field_validator

from hublet.core.schema import Moment, Schema
from hublet.notifications.inbox.schemas import Filters
from hublet.repos.records import RepoType
from hublet.web.pages import read_as

PATH = "/notifications"
_MOST_PAGES = 40_000


class InboxQuery(Schema):
    """What the address of the inbox says: the filters of the interface, a search, a grouping."""

    model_config = ConfigDict(extra="ignore")

    p: Annotated[int, Field(ge=0, le=_MOST_PAGES)] = 0
    readStatus: Literal["unread", "all"] = "unread"
    repoType: RepoType | Literal["paper", "post", "blog"] | None = None
    repoName: str | None = None
    postAuthor: str | None = None
    paperId: str | None = None
    articleId: str | None = None
    mention: Literal["all", "participating", "mentions"] = "all"
    lastUpdate: Moment | None = None
    q: Annotated[str, Field(max_length=200)] = ""
    group: Literal["repository", "none"] = "repository"
    # The id of a change that was just made, and can be undone.
    changed: str | None = None

    @field_validator("lastUpdate", mode="before")
    @classmethod
    def _until_its_end(cls, value: Any) -> Any:
        """Take a day alone, as a browser sends it, for all of that day."""
        is_day = isinstance(value, str) and len(value) == len("2026-11-15")
        return f"{value}T23:59:59.999999Z" if is_day else value

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Self:
        """Read the parameters of an address; those without a value are not there."""
        return read_as(cls, **{name: value for name, value in parameters.items() if value.strip()})

    @property
    def filters(self) -> Filters:
        values = self.model_dump(exclude_none=True, exclude={"p"})
        if self.other_type is not None:
            del values["repoType"]
        # What is no filter of the interface is ignored there.
        return Filters.model_validate(values)

    @property
    def other_type(self) -> str | None:
        """The type, if it is none of a repository."""
        is_other = self.repoType is not None and not isinstance(self.repoType, RepoType)
        return str(self.repoType) if is_other else None

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves out more than a tab does."""
        narrow = ("repoType", "repoName", "postAuthor", "paperId", "articleId", "lastUpdate", "q")
        return any(getattr(self, name) for name in narrow)

    def parameters(self, **changes: object) -> dict[str, str]:
        """Return the parameters of another address; what is usual is left out, and so is `changed`."""
        values = {"p": 0, "changed": None, **changes}
        asked = self.model_copy(update=values).model_dump(mode="json", exclude_defaults=True)
        return {name: str(value) for name, value in asked.items() if value}

    def address(self, **changes: object) -> str:
        """Return the address of another view of the inbox, at its first page unless `p` says so."""
        found = self.parameters(**changes)
        return f"{PATH}?{urlencode(found)}" if found else PATH

    def action(self, verb: str) -> str:
        """Return where a form of this very page is sent."""
        found = self.parameters(p=self.p)
        return f"{PATH}/{verb}?{urlencode(found)}" if found else f"{PATH}/{verb}"
