"""What this hub can do, as OpenAPI 3.1.0 and in words."""

from hublet.description.markdown import to_markdown
from hublet.description.openapi import describe, to_json

__all__ = ["describe", "to_json", "to_markdown"]
