"""Trusted publishers (interface 5.5): a workflow of a CI service writes one repository without a secret."""
