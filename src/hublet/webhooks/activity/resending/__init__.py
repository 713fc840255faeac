"""Sending again what was sent, or was not: replay, recover, ping."""
