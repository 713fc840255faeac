-- What an answer's head says of itself, as JSON: a few headers, shown with its body in the delivery log.

ALTER TABLE webhook_attempts ADD COLUMN response_headers TEXT;
