"""Git on the disk: objects in bare repositories. Knows no database; refs are not kept here."""
