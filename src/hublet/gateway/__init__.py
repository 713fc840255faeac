"""Gateway to running jobs from outside: their exposed ports, and SSH."""
