"""MemoryPackets: gathered, composed within a budget, rendered, kept as builds."""
