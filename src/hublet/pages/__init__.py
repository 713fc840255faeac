"""Pages of the hub itself: the landing page and the documentation of the API."""
