"""Reverse proxy for exposed ports of jobs, each a host of its own."""
