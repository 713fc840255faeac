"""Shim: a small program that runs one attempt beside the hub, and outlives the hub.

It stands alone: the standard library, little of that (memory, for each job), and no other module
of the hub. See sandbox/shim_starter.py for who starts it.
"""
