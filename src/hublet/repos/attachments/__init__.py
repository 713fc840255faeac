"""Pictures, videos and sounds that discussions and comments show."""
