"""Shim: a small program that runs one attempt beside the hub, and outlives the hub.

It stands alone: the standard library, little of that (memory, for each job), and no other module
of the hub. `sandbox/shim_starter.py` starts it.
"""
