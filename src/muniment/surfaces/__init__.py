"""The ways into muniment: command line, HTTP, MCP, the inspector, the client, hooks of coding agents. Nothing is
decided here.

Every operation available from outside is declared once, in `operations`: HTTP, OpenAPI, the client and the command line
are made from that table. Every surface refuses alike, with the same code, path and hint.

Read `operations.table` and `operations.rows`, then the surface you need: `http.app`, `cli`, `mcp.server`,
`client.remote`, `inspector.app`, `hosts.hooks`. `settings` defines the order in which settings are taken.
"""
