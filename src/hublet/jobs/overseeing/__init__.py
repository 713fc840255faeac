"""Looks after jobs until they are over: each gets its place, its attempts and its end."""
