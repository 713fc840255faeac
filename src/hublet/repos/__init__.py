"""Repositories of the six types: their records, who may reach them, and their content."""
