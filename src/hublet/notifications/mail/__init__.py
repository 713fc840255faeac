"""Mail: gathered by user and thread, sent later, dropped when it was read meanwhile."""
