"""Lets `python -m hublet` do what the command does."""

from hublet.cli import main

main()
