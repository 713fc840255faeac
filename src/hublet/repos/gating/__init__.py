"""Gated repositories: who asked to read one, and who was let in."""
