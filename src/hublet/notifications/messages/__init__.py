"""Messages of the hub itself to a user."""
