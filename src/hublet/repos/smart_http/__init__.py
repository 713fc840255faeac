"""Git over HTTP: clone, fetch and push with any git.

Fetching is git's own work; a push is taken apart here, because refs live in the database.
"""
