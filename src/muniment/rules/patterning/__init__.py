"""Patterning (RC-24): data weights from a measured response, offline only. Pure.

`levers` says which mixtures are tried, `observables` what is read of each, `response` turns the readings into χ,
`solution` turns χ round into weights, `planning` writes the plan, `stages` takes it through replay, canary and
rollback, `rates` reads observables from the logs of runs. Nothing here trains, runs or stores anything.
"""
