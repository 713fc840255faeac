"""Filters: what the words of a request mean in an inbox."""
