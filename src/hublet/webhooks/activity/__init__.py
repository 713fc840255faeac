"""Delivery log of a webhook: listed, streamed, sent again, pruned."""
