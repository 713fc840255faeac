-- Trusted publishers: workflows of other services that exchange their ID tokens for tokens of one repository.
SELECT 1;
