"""Logs of jobs: one file each, which only grows; a line is `<microseconds> <text>`."""
