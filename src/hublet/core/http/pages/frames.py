"""What stands around the content of a page: whose it is, and where else one can go."""

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The head of a page of somebody who is signed in; `page.html` takes it as `frame`."""

    user_name: str
    # For the button that signs out.
    sign_out_token: str
    # The path of the settings page that is shown; None on pages that are no settings.
    current: str | None = None


# The pages of the settings, in the order of their navigation.
SETTINGS_PAGES = (
    ("/settings/sessions", "Sessions"),
    ("/settings/password", "Password"),
    ("/settings/passkeys", "Passkeys"),
    ("/settings/applications", "Applications"),
    ("/settings/connected-applications", "Connected applications"),
)
