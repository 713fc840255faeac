"""Who carries which delivery, and for how long."""
