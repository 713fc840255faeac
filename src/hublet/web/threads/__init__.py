"""Pages of discussions and pull requests."""
