"""Delivery to targets: fair, leased, retried until it arrives or is given up."""
