"""Buckets and containers as such: created, found, listed, deleted."""
