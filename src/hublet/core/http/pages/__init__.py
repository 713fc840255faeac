"""Pages that a person sees: one layout and style, templates in the features."""

from hublet.core.http.pages.documents import Document, answer
from hublet.core.http.pages.frames import Frame
from hublet.core.http.pages.rendering import Templates
from hublet.core.http.pages.responses import page_response
from hublet.core.http.pages.routing import PageRouter, error_page
from hublet.core.http.pages.static_files import STATIC_FILES, address_of

__all__ = [
    "STATIC_FILES",
    "Document",
    "Frame",
    "PageRouter",
    "Templates",
    "address_of",
    "answer",
    "error_page",
    "page_response",
]
