"""Comments under posts."""
