"""Networks of jobs: addresses, network groups and egress rules, made of what the kernel has."""
