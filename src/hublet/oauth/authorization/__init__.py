"""The authorization request: checked, asked about, answered with a code."""
