"""The receiver as an ASGI application: what is let in, what it is answered, what a visitor sees."""
