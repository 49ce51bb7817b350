"""Coding agents that muniment serves through their own hooks and configuration files.

repository      the repository a directory belongs to, and the tenant of its memory
events          events, tool results and transcripts of hosts, in one shape
hooks           recording in hooks, and the text they give the agent
hook_command    the command that a host runs: arguments, limits, exit codes
hosts           the configuration files of each host
json_text       JSON with comments, edited in place
config_files    configuration files, read, edited and written atomically
installing      an installation's changes, shown before they are made; and its removal

A hook never stops its host: it ends within its limit, blocks nothing and prints an answer or nothing. A configuration
file that could not be read whole is never written.

Read `repository`, `hooks`, `installing`.
"""
