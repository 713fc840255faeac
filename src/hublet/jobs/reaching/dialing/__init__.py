"""Connections to what a job listens on, wherever its network is."""
