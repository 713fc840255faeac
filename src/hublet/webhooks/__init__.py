"""Webhooks: what they watch, what they send or start, and what became of it."""
