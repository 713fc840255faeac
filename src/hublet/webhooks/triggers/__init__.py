"""From an event to the deliveries it causes, in the transaction of the event."""
