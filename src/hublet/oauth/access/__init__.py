"""Access: a permission in use, with everything that was issued from it."""
