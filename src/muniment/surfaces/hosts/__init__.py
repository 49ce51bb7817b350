"""Coding agents that muniment serves through their own hooks and configuration files.

repository      which repository a directory belongs to, and the tenant that its memory is kept under
events          what the hosts' hooks say, in one shape
transcripts     the hosts' transcripts of a session, read as turns
recording       events and transcripts become entries, each once
hooks           what a hook records and what it tells the agent
hook_command    the command that a host runs: arguments, limits, exit codes
json_text, toml_text    configuration files edited where they stand
hosts           which host keeps what in which file
installing      what an installation changes, shown before it is done; and how it is taken out

A hook never stops its host: it ends within its limit, blocks nothing and prints an answer or nothing. No
configuration file is written that could not be read whole.

Read `repository`, `hooks`, `installing`.
"""
