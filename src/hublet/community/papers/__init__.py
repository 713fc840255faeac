"""Papers: what was published elsewhere and is talked about here."""
