-- What a credential granted to whatever acts later in its user's name: tokens/delegations.py.
-- It is JSON, or NULL, as in rows from before: everything that the creator may.

ALTER TABLE jobs ADD COLUMN delegation TEXT;
ALTER TABLE scheduled_jobs ADD COLUMN delegation TEXT;
-- NULL also for a webhook that posts to a URL.
ALTER TABLE webhooks ADD COLUMN delegation TEXT;
