"""Inbox of a user: what came, what was read, and how much of it there is."""
