"""Asks for a licence where a model card names none."""
