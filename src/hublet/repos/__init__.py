"""The six repository types: records, rights, content."""
