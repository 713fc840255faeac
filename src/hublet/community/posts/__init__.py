"""Posts: short texts under a user's name."""
