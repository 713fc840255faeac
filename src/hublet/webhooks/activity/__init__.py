"""What became of each delivery, and sending it again."""
