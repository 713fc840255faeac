"""What a user watches and what a user muted."""
