"""Who the holder of a token acts for."""
