"""Delivery of events to targets: fair, leased, retried until it succeeds or is given up."""
