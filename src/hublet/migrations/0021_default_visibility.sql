-- Who sees a new repository of an organization, when its creator does not say: public or private.

ALTER TABLE organizations ADD COLUMN default_visibility TEXT NOT NULL DEFAULT 'public';
