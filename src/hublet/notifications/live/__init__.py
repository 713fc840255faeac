"""The inbox as it changes, for somebody who listens."""
