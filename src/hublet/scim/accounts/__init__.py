"""The accounts behind provisioned users, and their place in the organization."""
