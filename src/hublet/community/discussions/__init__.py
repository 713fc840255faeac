"""Discussions and pull requests of repositories."""
