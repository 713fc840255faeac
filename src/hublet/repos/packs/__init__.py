"""Packs of git objects in a store that all nodes share: written before the refs move, cached on each node."""
