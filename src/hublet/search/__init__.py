"""Search: an index of words kept by events, and queries that find only what a caller may see."""
