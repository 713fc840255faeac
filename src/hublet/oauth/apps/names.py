"""What an app may be called: people read it when they decide whether to trust the app."""

MAX_NAME = 100


def clean_name(text: str) -> str:
    """Return the name without outer blanks; a ValueError tells the rule that it breaks."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME:
        raise ValueError(f"the name of an app has 1 to {MAX_NAME} characters")
    # Marks that turn the direction of writing would make one name look like another.
    if not name.isprintable():
        raise ValueError("the name of an app has no control characters and no invisible ones")
    return name
