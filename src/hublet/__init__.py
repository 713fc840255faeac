"""The Hub you can start inside a test and keep in production."""

# The only version number; interface 9 fixes that of the description.
__version__ = "0.0.1"
