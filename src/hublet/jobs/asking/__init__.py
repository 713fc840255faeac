"""What is asked for becomes a job: each rule with its sentence."""
