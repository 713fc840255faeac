"""What a job uses while it runs."""
