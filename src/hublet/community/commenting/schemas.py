"""What threads of papers, posts and blogs answer beside their comments."""

from hublet.core.schema import Schema


class Muted(Schema):
    """Whether the caller hears nothing more of the thread."""

    muted: bool
