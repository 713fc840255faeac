"""Rendering of content as HTML: pure functions, without HTTP, database or files.

Each module has a `VERSION`, which belongs into the key of every cache of what it made. What cannot be
shown, because it is damaged or too large, has a `refusal`: a sentence for the page.
"""

from hublet.repos.safetensors import ByteReader as ByteReader
