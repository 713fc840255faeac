"""Pages on which administrators manage an organization."""
