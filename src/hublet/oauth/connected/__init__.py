"""What a person's apps have access to now, and how it is taken back."""
