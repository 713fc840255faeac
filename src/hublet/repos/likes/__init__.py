"""Who likes which repository."""
