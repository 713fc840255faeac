"""A small program that runs attempts beside the hub, and outlives the hub.

It stands alone: the standard library, little of that (memory, for each job), and no other module
of the hub. See starting.py for who starts it.
"""
