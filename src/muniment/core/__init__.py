"""What every room uses: the record base, canonical JSON, text analysis, ports, policy, statistics, predicates."""
