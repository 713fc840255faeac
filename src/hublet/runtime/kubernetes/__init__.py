"""Kubernetes runner: pods of a cluster, and what attaches to them."""
