-- Partitions on PostgreSQL: by day what grows by the day, 32 for inboxes; SQLite keeps one table of each.

-- only postgresql
DO $$
DECLARE
    part record;
    old text;
    each record;
    tomorrow bigint := extract(epoch FROM date_trunc('day', now() AT TIME ZONE 'UTC'))::bigint + 86400;
    newest text;
    bound bigint;
BEGIN
    ALTER TABLE webhook_attempts DROP CONSTRAINT webhook_attempts_delivery_id_fkey;
    ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_event_id_fkey;
    -- Ids begin with their time: what is there already becomes one partition, which ends with the day
    -- of its newest row, today at the earliest. No row is copied.
    FOR part IN SELECT * FROM (VALUES
        ('webhook_events', 'id'), ('webhook_deliveries', 'event_id'), ('webhook_attempts', 'delivery_id')
    ) AS parts (parent, key) LOOP
        EXECUTE format('SELECT max(%I) FROM %I', part.key, part.parent) INTO newest;
        bound := tomorrow;
        IF newest ~ '^[0-9a-f]{8}' THEN
            bound := greatest(bound, (('x' || left(newest, 8))::bit(32)::bigint / 86400 + 1) * 86400);
        END IF;
        old := part.parent || '_before' || to_char(to_timestamp(bound) AT TIME ZONE 'UTC', 'YYYYMMDD');
        FOR each IN SELECT indexname FROM pg_indexes
            WHERE schemaname = current_schema() AND tablename = part.parent LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', each.indexname,
                replace(each.indexname, part.parent, part.parent || '_before'));
        END LOOP;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', part.parent, old);
        IF part.parent = 'webhook_deliveries' THEN
            EXECUTE format('ALTER TABLE %I DROP CONSTRAINT webhook_deliveries_before_pkey', old);
            EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET NOT NULL', old);
        END IF;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY RANGE (%I)',
            part.parent, old, part.key);
        IF part.parent = 'webhook_events' THEN
            ALTER TABLE webhook_events ADD PRIMARY KEY (id);
            CREATE INDEX webhook_events_by_time ON webhook_events (created_at);
        ELSIF part.parent = 'webhook_deliveries' THEN
            ALTER TABLE webhook_deliveries ADD UNIQUE (event_id, webhook_id);
            ALTER TABLE webhook_deliveries ADD FOREIGN KEY (webhook_id)
                REFERENCES webhooks (id) ON DELETE CASCADE;
            CREATE INDEX webhook_deliveries_by_id ON webhook_deliveries (id);
            CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, id);
            CREATE INDEX webhook_deliveries_fresh ON webhook_deliveries (id) WHERE state = 'fresh';
            CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id)
                WHERE state = 'pending' AND claimed_by IS NULL;
            CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (claimed_by)
                WHERE claimed_by IS NOT NULL;
        ELSE
            CREATE INDEX webhook_attempts_of_delivery ON webhook_attempts (delivery_id, number);
        END IF;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
            part.parent, old, lpad(to_hex(bound), 8, '0'));
        -- Catches what has no day of its own.
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT',
            part.parent || '_default', part.parent);
    END LOOP;

    FOR each IN SELECT indexname FROM pg_indexes
        WHERE schemaname = current_schema() AND tablename = 'notifications' LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', each.indexname, 'old_' || each.indexname);
    END LOOP;
    ALTER TABLE notifications RENAME TO old_notifications;
    CREATE TABLE notifications (LIKE old_notifications INCLUDING DEFAULTS) PARTITION BY HASH (user_id);
    FOR bound IN 0..31 LOOP
        EXECUTE format(
            'CREATE TABLE notifications_%s PARTITION OF notifications FOR VALUES WITH (MODULUS 32, REMAINDER %s)',
            bound, bound);
    END LOOP;
END $$;

INSERT INTO notifications SELECT * FROM old_notifications;
DROP TABLE old_notifications;
ALTER TABLE notifications ADD PRIMARY KEY (user_id, thread_id);
ALTER TABLE notifications ADD FOREIGN KEY (user_id) REFERENCES inboxes (user_id);
CREATE INDEX notifications_by_time ON notifications (user_id, updated_at);
CREATE INDEX notifications_by_type ON notifications (user_id, type, updated_at);
CREATE INDEX notifications_by_place ON notifications (user_id, place_id, updated_at)
WHERE place_id IS NOT NULL;
CREATE INDEX notifications_involved ON notifications (user_id, involvement, updated_at)
WHERE involvement > 0;
CREATE INDEX notifications_unread ON notifications (user_id, updated_at) WHERE NOT read;
CREATE INDEX notifications_unread_by_type ON notifications (user_id, type, updated_at)
WHERE NOT read;
CREATE INDEX notifications_unread_by_place ON notifications (user_id, place_id, updated_at)
WHERE NOT read AND place_id IS NOT NULL;
CREATE INDEX notifications_unread_involved ON notifications (user_id, involvement, updated_at)
WHERE NOT read AND involvement > 0;
CREATE INDEX notifications_of_thread ON notifications (thread_id, user_id);

-- Queues are small and written all the time: vacuum early, and let updates stay on their page.
ALTER TABLE outbox SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000, fillfactor = 70
);
ALTER TABLE tasks SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000, fillfactor = 70
);
-- end
