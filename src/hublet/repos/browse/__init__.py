"""Browsing of repositories: trees, history, downloads, information and lists."""
