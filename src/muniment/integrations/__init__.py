"""Integrations with agent frameworks, each behind an extra.

session         the common base: one session of one user, with record, compose, search and forget
wrapping        the official OpenAI and Anthropic clients with a memory: `muniment.wrap`
proxy           a memory in front of any model server: `muniment proxy`
litellm         a memory as a LiteLLM callback
langgraph       a `BaseStore`, and nodes that observe messages and compose packets
openai_agents   a `Session`
pydantic_ai     message history, a history processor and a toolset
llama_index     a `BaseMemory`
anthropic       the memory tool's commands on /memories
mem0            mem0's API, for migration
google_adk      a session service, a memory service and a plugin
agent_framework a context provider and a history provider
autogen         its `Memory` protocol
haystack        components, hooks and tools
smolagents      callbacks, a model wrapper with a packet, and tools
crewai          a memory for crews and agents
strands         a plugin, a session manager and a memory store
dspy            modules with memory, histories, a retriever, tools, a callback
claude_agent_sdk    hooks and tools for agents built with the Claude Agent SDK
hooks           the hook command of coding agents as a module, implemented in `surfaces.hosts`

A module whose package is not installed raises `MissingDependency` when it is imported. Everything goes through the
public face (`Memory`, `Run`, `Corpus`), so that a store behind `muniment.connect(…)` works as well as one on disk.
"""
