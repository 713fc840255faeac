"""Where deliveries go, and whether they still may."""
