"""Description of the API: OpenAPI 3.1.0, and Markdown for readers."""

from hublet.description.markdown import to_markdown
from hublet.description.openapi import describe, to_json

__all__ = ["describe", "to_json", "to_markdown"]
