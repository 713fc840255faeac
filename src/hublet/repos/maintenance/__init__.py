"""Keeping bare repositories in shape: git's own list of refs, and packing."""
