"""Reading the body of a commit: NDJSON of any size, piece by piece."""
