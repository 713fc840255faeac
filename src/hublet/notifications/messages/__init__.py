"""What the hub itself tells a user."""
