-- Totals: counts and sums that are kept, so that telling them costs the same however much was counted.
-- Triggers keep them, in the transaction of each change.

CREATE TABLE totals (
    -- What is counted, with its stage or type, as in jobs:RUNNING.
    kind TEXT NOT NULL,
    -- Whose it is; what has parts is kept by part, as in {owner}/{resource group}.
    subject TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
) /* clustered */;

-- What a total lacks still: on PostgreSQL a trigger only adds rows here, so that no two transactions
-- wait for one total, and the worker folds them. SQLite has one writer, whose triggers change the total.
CREATE TABLE total_changes (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    change BIGINT NOT NULL
);
CREATE INDEX total_changes_of_subject ON total_changes (kind, subject);

-- only sqlite
CREATE TRIGGER count_new_job AFTER INSERT ON jobs BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_changed_job AFTER UPDATE OF stage, owner_id, resource_group_id ON jobs
WHEN (OLD.stage, OLD.owner_id, OLD.resource_group_id)
    IS NOT (NEW.stage, NEW.owner_id, NEW.resource_group_id) BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES
        ('jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1),
        ('jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_job AFTER DELETE ON jobs BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_member AFTER INSERT ON memberships BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('members', NEW.organization_id, 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', NEW.organization_id, 1 FROM users
    WHERE id = NEW.user_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_member AFTER DELETE ON memberships BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('members', OLD.organization_id, -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', OLD.organization_id, -1 FROM users
    WHERE id = OLD.user_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_new_follower AFTER INSERT ON follows BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('followers', NEW.account_id, 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', NEW.account_id, 1 FROM users
    WHERE id = NEW.follower_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_follower AFTER DELETE ON follows BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('followers', OLD.account_id, -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', OLD.account_id, -1 FROM users
    WHERE id = OLD.follower_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_disabled_user AFTER UPDATE OF disabled_at ON users
WHEN (OLD.disabled_at IS NULL) <> (NEW.disabled_at IS NULL) BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', organization_id, iif(NEW.disabled_at IS NULL, -1, 1)
    FROM memberships WHERE user_id = NEW.id
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', account_id, iif(NEW.disabled_at IS NULL, -1, 1)
    FROM follows WHERE follower_id = NEW.id
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_repo AFTER INSERT ON repos BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', NEW.owner_id, NEW.size WHERE NEW.size <> 0
    UNION ALL
    SELECT 'public_repos', NEW.owner_id || '/' || NEW.type, 1 WHERE NEW.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_changed_repo AFTER UPDATE OF size, owner_id, visibility, type ON repos
WHEN (OLD.size, OLD.owner_id, OLD.visibility, OLD.type)
    IS NOT (NEW.size, NEW.owner_id, NEW.visibility, NEW.type) BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', OLD.owner_id, - OLD.size WHERE OLD.owner_id <> NEW.owner_id
    UNION ALL
    SELECT 'repo_bytes', NEW.owner_id, NEW.size - iif(OLD.owner_id = NEW.owner_id, OLD.size, 0)
    UNION ALL
    SELECT 'public_repos', OLD.owner_id || '/' || OLD.type, -1 WHERE OLD.visibility = 'public'
    UNION ALL
    SELECT 'public_repos', NEW.owner_id || '/' || NEW.type, 1 WHERE NEW.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_repo AFTER DELETE ON repos BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', OLD.owner_id, - OLD.size WHERE OLD.size <> 0
    UNION ALL
    SELECT 'public_repos', OLD.owner_id || '/' || OLD.type, -1 WHERE OLD.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_scim_user AFTER INSERT ON scim_users BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_users', NEW.organization_id || iif(NEW.managed, '/managed', ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_scim_user AFTER DELETE ON scim_users BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_users', OLD.organization_id || iif(OLD.managed, '/managed', ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_new_scim_group AFTER INSERT ON scim_groups BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_groups', NEW.organization_id || iif(NEW.managed, '/managed', ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
CREATE TRIGGER count_removed_scim_group AFTER DELETE ON scim_groups BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_groups', OLD.organization_id || iif(OLD.managed, '/managed', ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
-- end

-- only postgresql
ALTER TABLE totals SET (fillfactor = 70);
-- Emptied again and again.
ALTER TABLE total_changes SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000
);

CREATE FUNCTION count_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO total_changes VALUES (
            'jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1
        );
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO total_changes VALUES (
            'jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1
        );
    ELSE
        INSERT INTO total_changes VALUES
            ('jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1),
            ('jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_job AFTER INSERT OR DELETE ON jobs
FOR EACH ROW EXECUTE FUNCTION count_job();
CREATE TRIGGER count_changed_job AFTER UPDATE OF stage, owner_id, resource_group_id ON jobs
FOR EACH ROW WHEN (
    (OLD.stage, OLD.owner_id, OLD.resource_group_id)
    IS DISTINCT FROM (NEW.stage, NEW.owner_id, NEW.resource_group_id)
) EXECUTE FUNCTION count_job();

-- Whether a user is disabled must not change between the look at it and the end of the transaction that
-- counts by it. So the triggers of memberships and follows take the lock on the user that a foreign key
-- takes, before they look, and the one of users takes the lock that waits for those.
CREATE FUNCTION count_member() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    member memberships := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
    change bigint := CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    PERFORM 1 FROM users WHERE id = member.user_id FOR KEY SHARE;
    INSERT INTO total_changes
    SELECT 'members', member.organization_id, change
    UNION ALL
    SELECT 'disabled_members', member.organization_id, change FROM users
    WHERE id = member.user_id AND disabled_at IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER count_member AFTER INSERT OR DELETE ON memberships
FOR EACH ROW EXECUTE FUNCTION count_member();

CREATE FUNCTION count_follower() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    follow follows := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
    change bigint := CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    PERFORM 1 FROM users WHERE id = follow.follower_id FOR KEY SHARE;
    INSERT INTO total_changes
    SELECT 'followers', follow.account_id, change
    UNION ALL
    SELECT 'disabled_followers', follow.account_id, change FROM users
    WHERE id = follow.follower_id AND disabled_at IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER count_follower AFTER INSERT OR DELETE ON follows
FOR EACH ROW EXECUTE FUNCTION count_follower();

CREATE FUNCTION count_disabled_user() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    change bigint := CASE WHEN NEW.disabled_at IS NULL THEN -1 ELSE 1 END;
BEGIN
    PERFORM 1 FROM users WHERE id = NEW.id FOR UPDATE;
    INSERT INTO total_changes
    SELECT 'disabled_members', organization_id, change FROM memberships WHERE user_id = NEW.id
    UNION ALL
    SELECT 'disabled_followers', account_id, change FROM follows WHERE follower_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER count_disabled_user AFTER UPDATE OF disabled_at ON users
FOR EACH ROW WHEN ((OLD.disabled_at IS NULL) <> (NEW.disabled_at IS NULL))
EXECUTE FUNCTION count_disabled_user();

CREATE FUNCTION count_repo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'UPDATE' AND OLD.owner_id = NEW.owner_id THEN
        IF OLD.size <> NEW.size THEN
            INSERT INTO total_changes VALUES ('repo_bytes', NEW.owner_id, NEW.size - OLD.size);
        END IF;
        IF (OLD.type, OLD.visibility) = (NEW.type, NEW.visibility) THEN
            RETURN NULL;
        END IF;
    ELSE
        IF TG_OP <> 'INSERT' AND OLD.size <> 0 THEN
            INSERT INTO total_changes VALUES ('repo_bytes', OLD.owner_id, - OLD.size);
        END IF;
        IF TG_OP <> 'DELETE' AND NEW.size <> 0 THEN
            INSERT INTO total_changes VALUES ('repo_bytes', NEW.owner_id, NEW.size);
        END IF;
    END IF;
    IF TG_OP <> 'INSERT' AND OLD.visibility = 'public' THEN
        INSERT INTO total_changes VALUES ('public_repos', OLD.owner_id || '/' || OLD.type, -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.visibility = 'public' THEN
        INSERT INTO total_changes VALUES ('public_repos', NEW.owner_id || '/' || NEW.type, 1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_repo AFTER INSERT OR DELETE ON repos
FOR EACH ROW EXECUTE FUNCTION count_repo();
CREATE TRIGGER count_changed_repo AFTER UPDATE OF size, owner_id, visibility, type ON repos
FOR EACH ROW WHEN (
    (OLD.size, OLD.owner_id, OLD.visibility, OLD.type)
    IS DISTINCT FROM (NEW.size, NEW.owner_id, NEW.visibility, NEW.type)
) EXECUTE FUNCTION count_repo();

-- Of SCIM: the name of the table is the kind.
CREATE FUNCTION count_in_directory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO total_changes VALUES (
            TG_TABLE_NAME, NEW.organization_id || CASE WHEN NEW.managed THEN '/managed' ELSE '' END, 1
        );
    ELSE
        INSERT INTO total_changes VALUES (
            TG_TABLE_NAME, OLD.organization_id || CASE WHEN OLD.managed THEN '/managed' ELSE '' END, -1
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_scim_user AFTER INSERT OR DELETE ON scim_users
FOR EACH ROW EXECUTE FUNCTION count_in_directory();
CREATE TRIGGER count_scim_group AFTER INSERT OR DELETE ON scim_groups
FOR EACH ROW EXECUTE FUNCTION count_in_directory();
-- end

-- What is there already; on PostgreSQL the triggers above hold off writers until this is committed.
INSERT INTO totals (kind, subject, value)
SELECT 'jobs:' || stage, owner_id || coalesce('/' || resource_group_id, ''), count(*)
FROM jobs GROUP BY 1, 2;
INSERT INTO totals (kind, subject, value)
SELECT 'members', organization_id, count(*) FROM memberships GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'disabled_members', m.organization_id, count(*)
FROM memberships m JOIN users u ON u.id = m.user_id WHERE u.disabled_at IS NOT NULL GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'followers', account_id, count(*) FROM follows GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'disabled_followers', f.account_id, count(*)
FROM follows f JOIN users u ON u.id = f.follower_id WHERE u.disabled_at IS NOT NULL GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'repo_bytes', owner_id, sum(size) FROM repos GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'public_repos', owner_id || '/' || type, count(*) FROM repos
WHERE visibility = 'public' GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'scim_users', organization_id || CASE WHEN managed THEN '/managed' ELSE '' END, count(*)
FROM scim_users GROUP BY 2;
INSERT INTO totals (kind, subject, value)
SELECT 'scim_groups', organization_id || CASE WHEN managed THEN '/managed' ELSE '' END, count(*)
FROM scim_groups GROUP BY 2;

-- Their sum is a total now.
DROP INDEX repo_sizes_of_owner;
