"""Doctor: checks of a hub, for the command of that name and for the page of its administrators."""
