"""Attachment to a running attempt, like `docker exec`: a program becomes a process of the job.

What runs inside is a program of its own: it knows no other module of the hub but the shim's, and
loads nothing that takes long.
"""
