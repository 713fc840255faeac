"""HTTP between a visitor and a job, as bytes."""
