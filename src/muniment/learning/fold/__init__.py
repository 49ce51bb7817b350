"""Folding (001 §4.5, §4.6): finished runs compared, what could help the next proposed, plans executed by rule. Pure.

It never activates a rule: promotion is another room, which this one may not import.
"""
