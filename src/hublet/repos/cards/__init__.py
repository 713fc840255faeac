"""The metadata at the top of README.md: read, checked, and turned into tags."""
