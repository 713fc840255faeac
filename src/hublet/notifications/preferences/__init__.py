"""Preferences: what a user wants to be notified of, in the inbox and by mail."""
