"""How long a test waits for what must come, on a machine that is busy with other work."""

# Only a test that fails ever waits so long.
SOON_SECONDS = 40.0
