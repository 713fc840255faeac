"""Jobs that start by the clock."""
