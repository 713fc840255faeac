"""Channels of the database that more than one floor listens to."""

# Woken when a credential, an account or a membership ends: wakes every process that remembers
# who a token belongs to, and whoever holds something open for somebody.
CREDENTIALS = "credentials"
