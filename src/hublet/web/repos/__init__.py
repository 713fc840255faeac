"""Pages of repositories: the card, the gate, and the files of buckets and containers."""
