"""The page where a person enters the code that a device shows."""
