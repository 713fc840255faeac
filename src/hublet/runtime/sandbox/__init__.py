"""Runners of this machine: an attempt is a sandbox or a plain process, each in the care of a shim."""
