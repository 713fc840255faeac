"""Delivery log of a webhook: list, stream, replay, recover, ping, prune."""
