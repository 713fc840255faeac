"""Branches, tags and pull requests: what they point to, and how they move."""
