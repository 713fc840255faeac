"""Comments under papers."""
