"""The pages on which a person keeps the apps they registered."""
