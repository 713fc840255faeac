"""Pull requests: discussions with a ref of their own, and how they are merged."""
