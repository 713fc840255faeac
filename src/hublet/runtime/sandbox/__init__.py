"""Runners of this machine: an attempt is a sandbox or a plain process, kept by a shim."""
