-- Tokens that are bound to the MCP server.
SELECT 1;
