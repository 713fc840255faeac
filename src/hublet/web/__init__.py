"""The hub in a browser: pages that mix features. They call the services that the API calls."""
