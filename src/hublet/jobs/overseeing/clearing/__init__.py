"""What is left of attempts, and how it goes away."""
