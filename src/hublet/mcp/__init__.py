"""MCP tools: which built-in tools and which spaces a user offers to assistants."""
