"""Papers that were published elsewhere, with votes and comments."""
