"""Docker runner, and what attaches to its containers."""
