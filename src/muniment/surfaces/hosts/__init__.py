"""Coding agents that muniment serves through their own hooks and configuration files.

repository      which repository a directory belongs to, and the tenant that its memory is kept under
events          what hosts report, in one shape: events, tool results, transcripts
hooks           what a hook records and what it gives the agent
hook_command    the command that a host runs: arguments, limits, exit codes
hosts           which host keeps what in which file
json_text       JSON with comments, edited in place
config_files    configuration files read, edited and written at once or not at all
installing      what an installation changes, shown before it is done; and how it is taken out

A hook never stops its host: it ends within its limit, blocks nothing and prints an answer or nothing. No
configuration file is written that could not be read whole.

Read `repository`, `hooks`, `installing`.
"""
