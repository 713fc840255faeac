"""Pages of webhooks: list, one with its deliveries, forms, samples; of people and organizations."""
