"""Branches, tags and pull request refs: the table that says what they point to, and how they move."""
