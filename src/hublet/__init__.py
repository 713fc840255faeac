"""The Hub you can start inside a test and keep in production."""

__version__ = "0.1.0"
