"""Comments under community blogs."""
