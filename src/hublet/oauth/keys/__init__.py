"""The keys that sign ID tokens: made, shown ahead of their use, replaced."""
