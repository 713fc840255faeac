"""Reaching a job from outside: its exposed ports, each a host of its own."""
