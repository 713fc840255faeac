"""What became of attempts, written many at a time."""
