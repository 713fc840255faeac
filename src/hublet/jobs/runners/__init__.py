"""What runs one attempt of a job; attempts, deadlines, logs and secrets belong to the hub."""
