"""What the learned estimator says of itself: how it was calibrated, and how it did on runs it was not made of."""

from __future__ import annotations

from typing import Any

from muniment.rules.flowmap.cells import rounded
from muniment.rules.flowmap.field import FlowField
from muniment.rules.flowmap.logit import Field

__all__ = ["calibration_block"]


def calibration_block(field: FlowField, folds: int) -> dict[str, Any]:
    """The contract's note, and the same as numbers."""
    fields = {"risk": field.risk} | ({} if field.passing is None else {"pass": field.passing})
    notes = [f"platt on {folds} held-out folds", *(_note(name, each) for name, each in fields.items())]
    return {"calibration": "; ".join(notes), "held_out": {name: _figures(each) for name, each in fields.items()}}


def _note(name: str, field: Field) -> str:
    held = field.calibration
    return (
        f"{name}: ECE {held.ece:.4f} (rates {held.ece_raw:.4f}), "
        f"Brier {held.brier:.4f} (rates {held.brier_raw:.4f}), "
        f"log loss {held.log_loss:.4f} (rates {held.log_loss_raw:.4f})"
    )


def _figures(field: Field) -> dict[str, Any]:
    held = {name: rounded(value) for name, value in field.calibration._asdict().items()}
    platt = {"shift": rounded(field.shift), "slope": rounded(field.slope)}
    return {**held, **platt, "ridge": field.ridge, "features_n": len(field.names)}
