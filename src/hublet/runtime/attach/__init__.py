"""Attachment to a running attempt, like `docker exec`: a program becomes a process of the job.

The program that runs inside imports no other module of the hub but the shim's, and nothing that
is slow to load.
"""
