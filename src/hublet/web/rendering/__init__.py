"""Rendering of content as HTML: pure functions, without HTTP, database or files.

Each module has a `VERSION`, which belongs into the key of every cache of what it made. What cannot be
shown, because it is damaged or too large, has a `refusal`: a sentence for the page.
"""

from collections.abc import Callable

# Reads the bytes of a file from a position up to, and without, another one.
ByteReader = Callable[[int, int], bytes]
