"""HTML pages: one layout and style for all; the templates of a page stay in its feature."""

from hublet.core.pages.documents import (
    STATIC_FILES,
    Document,
    document_response,
    page_response,
    static_url,
)
from hublet.core.pages.rendering import Frame, Templates
from hublet.core.pages.routing import PageRouter, error_page

__all__ = [
    "STATIC_FILES",
    "Document",
    "Frame",
    "PageRouter",
    "Templates",
    "document_response",
    "error_page",
    "page_response",
    "static_url",
]
