"""Many changes of files in one request: all of them, or none."""
