"""Changing what lies in a repository: one request, one commit."""
