"""How a job is shown, and how it is followed."""
