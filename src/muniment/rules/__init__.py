"""Rules with a life: rulebook, promotion, rollouts, routing, flow map, patterning, tree search."""
