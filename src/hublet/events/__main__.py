"""Writes the documentation of the events: `python -m hublet.events > docs/events.md`."""

import sys

from hublet.events.documentation import as_markdown

sys.stdout.write(as_markdown())
