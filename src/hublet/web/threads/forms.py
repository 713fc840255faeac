"""Forms of threads: what was typed, checked by the schemas of the API, and shown again if refused."""

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar

from markupsafe import Markup
from pydantic import ValidationError

from hublet.community.threads.records import Emoji
from hublet.core.dataclasses import dataclass
from hublet.core.errors import Conflict, HubError, InvalidRequest, NotAllowed
from hublet.core.http.validation import describe_problems
from hublet.core.schema import Schema

# Forms of papers, posts and blogs share one purpose: whose they are is asked of the service.
PUBLIC_PURPOSE = "public thread"

# What a person can mend, or at least has to read beside what was typed.
REFUSALS = (InvalidRequest, Conflict, NotAllowed)

S = TypeVar("S", bound=Schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormState:
    """A form that comes back: the name of the form, its fields, and why it was refused."""

    name: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    preview: Markup | None = None

    def typed(self, form: str, name: str, otherwise: str = "") -> str:
        """Return what was typed into a field of this form."""
        return self.values.get(name, otherwise) if form == self.name else otherwise

    def problem_of(self, form: str) -> str | None:
        return self.problem if form == self.name else None

    def preview_of(self, form: str) -> Markup | None:
        return self.preview if form == self.name else None


EMPTY = FormState()


def status_of(error: HubError) -> int:
    """Return the status of a page that shows a form again."""
    return error.status if isinstance(error, NotAllowed) else 422


def text_of(form: Mapping[str, str], name: str) -> str:
    """Return a text as it was typed: browsers send line breaks as two characters."""
    return form.get(name, "").replace("\r\n", "\n")


def emoji_of(form: Mapping[str, str]) -> Emoji:
    """Return the emoji that a form gives or takes back."""
    try:
        return Emoji(form.get("add") or form.get("remove", ""))
    except ValueError:
        raise InvalidRequest(f"add must be one of {', '.join(Emoji)}.") from None


def read_as(schema: type[S], **values: object) -> S:
    """Check fields of a form by the rules that the API has for them."""
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        problems = [{**each, "loc": ("form", *each["loc"])} for each in error.errors()]
        raise InvalidRequest(describe_problems(problems)) from None
