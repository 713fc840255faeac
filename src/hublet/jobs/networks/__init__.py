"""Networks between jobs, and from jobs to the outside: made of what the kernel has."""
