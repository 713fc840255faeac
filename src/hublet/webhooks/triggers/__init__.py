"""From a fact to the deliveries it causes, in the transaction of the fact."""
