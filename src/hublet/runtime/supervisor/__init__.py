"""Supervision of jobs: from a due job through its attempts to its end."""
