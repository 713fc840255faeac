-- Tokens for one part of the hub (RFC 8707), such as its MCP server.

-- The path below the hub's address, several with blanks between them. NULL: the whole hub.
ALTER TABLE tokens ADD COLUMN resource TEXT;
ALTER TABLE oauth_accesses ADD COLUMN resource TEXT;
ALTER TABLE oauth_codes ADD COLUMN resource TEXT;
