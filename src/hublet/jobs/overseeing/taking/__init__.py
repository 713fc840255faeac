"""Which jobs get a place, and who looks after them."""
