"""Watches and mutes of a user."""
