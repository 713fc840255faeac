"""Pages of an inbox: what is on them, and how much there is."""
