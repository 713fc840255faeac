"""Commits over the API: one request, one commit."""
