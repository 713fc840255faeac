"""Pages that are made for one person, at one moment."""

from collections.abc import Mapping

from starlette.responses import Response

# Such a page may send its own forms; it runs no script but our own, and nobody may frame it.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action {targets}"
)


def page_response(
    body: bytes,
    *,
    status: int = 200,
    forms_lead_to: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a page that nobody keeps.

    Browsers hold a form to its policy across redirects: `forms_lead_to` names where else, beside
    this hub, a form of the page may end, as the source of a policy.
    """
    targets = f"'self' {forms_lead_to}".strip()
    return Response(
        body,
        status_code=status,
        media_type="text/html",
        headers={
            "Content-Security-Policy": _POLICY.format(targets=targets),
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(headers or {}),
        },
    )
