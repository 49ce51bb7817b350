"""Seams for the frameworks people already use, each behind an extra.

session         what all of them stand on: one session of one user, with record, compose, search and forget
wrapping        the official OpenAI and Anthropic clients with a memory: `muniment.wrap`
proxy           the same in front of any model's server: `muniment proxy`
litellm         the same as a callback of LiteLLM
langgraph       a `BaseStore`, and nodes that observe messages and compose packets
openai_agents   a `Session`
pydantic_ai     message history, a history processor and a toolset
llama_index     a `BaseMemory`
anthropic       the memory tool's commands on /memories
mem0            the calls of mem0, for people who move over
google_adk      a session service, a memory service and a plugin
agent_framework a context provider and a history provider
autogen         its `Memory` protocol
haystack        components, hooks and tools
smolagents      callbacks, a model that is told, and tools
crewai          a memory for crews and agents
strands         a plugin, a session manager and a memory store
dspy            modules that are told and record, histories, a retriever, tools, a callback
claude_agent_sdk    hooks and tools for agents built with the Claude Agent SDK
hooks           the command for the hooks of coding agents, as a module; it stands in `surfaces.hosts`

A module whose package is not installed raises `MissingDependency` when it is imported. Everything goes through the
public face (`Memory`, `Run`, `Corpus`), so that a store behind `muniment.connect(…)` serves as well as one on disk.
"""
