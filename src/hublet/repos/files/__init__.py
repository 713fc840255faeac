"""Buckets and containers: files without git, one row for each path."""
