"""Browsers and systems in words, as people recognize their own."""

# The first that is found counts: most browsers also name those they once wanted to be taken for.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_LONGEST = 60


def browser_of(agent: str | None) -> str:
    """Return such as `Firefox on Linux`; of what is no browser, what it says of itself."""
    if agent is None:
        return "Unknown browser"
    browser = next((name for sign, name in _BROWSERS if sign in agent), None)
    system = next((name for sign, name in _SYSTEMS if sign in agent), None)
    if browser is None:
        return agent[:_LONGEST]
    return f"{browser} on {system}" if system else browser
