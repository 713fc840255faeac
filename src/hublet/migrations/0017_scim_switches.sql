-- Who switched a managed account off: its identity provider, or an administrator of the hub.

-- The moment at which the provider did. The account is the provider's to switch on for as long as
-- users.disabled_at tells the same moment.
ALTER TABLE scim_accounts ADD COLUMN switched_off_at BIGINT;

UPDATE scim_accounts SET switched_off_at = (
    SELECT u.disabled_at FROM users u WHERE u.id = scim_accounts.user_id
)
WHERE NOT EXISTS (
    SELECT 1 FROM scim_users s WHERE s.user_id = scim_accounts.user_id AND s.managed AND s.active
);
