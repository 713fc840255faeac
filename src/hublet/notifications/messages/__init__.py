"""Messages of the hub to its users."""
