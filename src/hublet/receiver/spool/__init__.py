"""Deliveries that were answered first: kept on the disk until their handler has done its work."""
