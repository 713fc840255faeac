"""Forms of threads: what was typed, checked by the schemas of the API, and shown again if refused."""

from collections.abc import Mapping
from dataclasses import field

from markupsafe import Markup

from hublet.community.threads.records import Emoji
from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest

# Forms of papers, posts and blogs share one purpose: whose they are is asked of the service.
PUBLIC_PURPOSE = "public thread"


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


def text_of(form: Mapping[str, str], name: str) -> str:
    """Return a text as it was typed: browsers send line breaks as two characters."""
    return form.get(name, "").replace("\r\n", "\n")


def emoji_of(form: Mapping[str, str]) -> Emoji:
    """Return the emoji that a form gives or takes back."""
    try:
        return Emoji(form.get("add") or form.get("remove", ""))
    except ValueError:
        raise InvalidRequest(f"add must be one of {', '.join(Emoji)}.") from None
