"""Large files beside git: where they go, how they come back, and how they are cleared away."""
