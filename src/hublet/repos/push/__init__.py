"""Git smart HTTP: push and fetch with any git. Fetch is git's own work; a push is taken apart
here, because refs live in the database.
"""
