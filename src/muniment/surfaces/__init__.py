"""Where people and programs meet muniment: command line, HTTP, MCP, the inspector, the client, hooks of coding agents.
Nothing is decided here.

What can be done from outside is declared once, in `operations`: HTTP, OpenAPI, the client and the command line are made
from that table. Every door refuses alike, with the same code, path and hint.

Read `operations.table` and `operations.rows`, then the door you are after: `http.app` and `http.gateway`, `cli`,
`mcp.server`, `client.remote`, `inspector.app`, `hosts.hooks`. `settings` says in which order settings are taken.
"""
