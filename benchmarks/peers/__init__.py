"""Others that deliver webhooks, each run in an environment of its own."""
