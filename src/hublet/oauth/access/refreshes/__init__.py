"""Refresh tokens: each is replaced when it is used, and remembered for who comes again."""
