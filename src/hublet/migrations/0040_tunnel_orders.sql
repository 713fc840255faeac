-- Orders between machines that were served: each is for one use, whichever process of its machine gets it.
CREATE TABLE tunnel_orders (
    nonce TEXT PRIMARY KEY,
    -- On the clock of leases; from then on the order itself says that it is too old.
    expires_at BIGINT NOT NULL
);

CREATE INDEX tunnel_orders_expires_at ON tunnel_orders (expires_at);
