"""Ridge logistic regression on counts: small, convex, and so the same numbers however it is reached.

A row is a set of named features that are true of it, with how often it was tried and how often it happened, by fold.
Weights are found by Newton's method to far beyond the digits that are published; the strength of the ridge and the
calibration (Platt's two numbers) come from folds that the weights were not made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.core.canonical import digest_of
from muniment.core.stats import Bounds

__all__ = ["Calibration", "Data", "Features", "Field", "Floats", "calibration_error", "data_of", "fit_field"]

Floats = NDArray[np.float64]
Features = tuple[str, ...]

INTERCEPT = "1"
_STEPS_MAX = 50
_TOLERANCE = 1e-7
"""How far the last step may go; Newton's next would be of the order of its square."""
_HELD_TOLERANCE = 1e-4
_SOLVED = 1e-8
"""How small the rest of a Newton step is, squared, beside the whole."""
_LEAST_SHARE = 1e-9
_FREE = 1e-6
"""The ridge on the intercept: as good as none."""
_BINS = 10
_EDGE = 1e-9
_DIGITS = 6


class Data(NamedTuple):
    """Rows by the columns that are true of them; `n` and `y` have one column for each fold."""

    names: tuple[str, ...]
    rows: NDArray[np.int32]
    """The columns of each row, filled up with one that is no column."""
    n: Floats
    y: Floats


class Calibration(NamedTuple):
    """How far the predictions held where they had not been fitted, before and after Platt's correction, and how far
    the plain rates of the same cells did.
    """

    ece_before: float
    ece: float
    brier: float
    ece_raw: float
    brier_raw: float
    log_loss: float
    log_loss_raw: float


@dataclass(frozen=True)
class Field:
    """A fitted estimator."""

    names: tuple[str, ...]
    weights: Floats
    covariance: Floats
    ridge: float
    shift: float
    slope: float
    calibration: Calibration

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    @property
    def model_ref(self) -> str:
        """The digest of all that a prediction depends on."""
        weights = dict(zip(self.names, (round(float(weight), _DIGITS) + 0.0 for weight in self.weights), strict=True))
        return digest_of({"weights": weights, "shift": round(self.shift, _DIGITS), "slope": round(self.slope, _DIGITS)})

    def predict(self, features: Features) -> tuple[float, Floats]:
        """The chance, and how it moves with the weights. Features never seen say nothing."""
        on = [self._place[name] for name in (INTERCEPT, *features) if name in self._place]
        chance = _chance(self.shift + self.slope * float(self.weights[on].sum()))
        gradient = np.zeros(len(self.names))
        gradient[on] = self.slope * chance * (1 - chance)
        return chance, gradient

    def deviation(self, gradient: Floats) -> float:
        """The standard deviation of a sum of predictions with this gradient."""
        return sqrt(max(0.0, float(gradient @ self.covariance @ gradient)))

    def correlation(self, one: Floats, other: Floats) -> float:
        """How far two sums of predictions move together, from -1 to 1."""
        spread = self.deviation(one) * self.deviation(other)
        return min(1.0, max(-1.0, float(one @ self.covariance @ other) / spread)) if spread else 0.0

    def chance_bounds(self, chance: float, gradient: Floats, z: float) -> Bounds:
        """Bounds on a mean of chances, on the scale of the logit, where they cannot leave 0 and 1."""
        held = min(max(chance, _EDGE), 1 - _EDGE)
        reach = z * self.deviation(gradient) / (held * (1 - held))
        middle = log(held / (1 - held))
        return Bounds(_chance(middle - reach), _chance(middle + reach))


def _chance(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit >= 0 else 1 - 1 / (1 + exp(logit))


# -- data ---------------------------------------------------------------------------------------------


def data_of(
    rows: Sequence[Features], n: Sequence[Sequence[int]], y: Sequence[Sequence[int]], features_max: int
) -> Data:
    """The rows as columns: of all features those with most trials behind them, ties by name."""
    trials = np.asarray(n, dtype=np.float64)
    totals: dict[str, float] = {}
    for features, total in zip(rows, trials.sum(axis=1).tolist(), strict=True):
        for name in features:
            totals[name] = totals.get(name, 0.0) + total
    kept = sorted(totals, key=lambda name: (-totals[name], name))[: features_max - 1]
    names = (INTERCEPT, *sorted(kept))
    place = {name: at for at, name in enumerate(names)}
    held = [[0, *(place[name] for name in features if name in place)] for features in rows]
    columns = np.full((len(held), max(map(len, held))), len(names), dtype=np.int32)
    for at, each in enumerate(held):
        columns[at, : len(each)] = each
    return Data(names, columns, trials, np.minimum(np.asarray(y, dtype=np.float64), trials))


# -- fitting ------------------------------------------------------------------------------------------


class _Problem(NamedTuple):
    """What is to be made small: the misfit to some of the folds, and the ridge.

    A row is a handful of columns, so nothing is ever multiplied as a matrix: it is looked up and added, which is
    quicker here and, unlike a threaded library, takes no longer on a machine that has other things to do.
    """

    data: Data
    n: Floats
    y: Floats
    penalty: Floats

    def loss(self, weights: Floats) -> float:
        logits = _logits(self.data, weights)
        misfit = self.n * np.logaddexp(0, logits) - self.y * logits
        return float(misfit.sum()) + float((self.penalty * weights * weights).sum()) / 2

    def slope_and_spread(self, weights: Floats) -> tuple[Floats, Floats]:
        """Where downhill is, and the variance of each row, of which the curvature is made."""
        chance = _chances(_logits(self.data, weights))
        slope = _gathered(self.data, self.y - self.n * chance) - self.penalty * weights
        return slope, self.n * chance * (1 - chance)

    def solve(self, spread: Floats, slope: Floats) -> Floats:
        """The Newton step, by conjugate gradients."""
        scale = _gathered(self.data, spread) + self.penalty
        step, rest = np.zeros_like(slope), slope.copy()
        near = rest / scale
        along, size = near.copy(), float((rest * near).sum())
        goal = size * _SOLVED
        for _ in range(4 * len(slope)):
            if size <= goal:
                break
            bent = _gathered(self.data, spread * _logits(self.data, along)) + self.penalty * along
            far = size / float((along * bent).sum())
            step, rest = step + far * along, rest - far * bent
            near = rest / scale
            before, size = size, float((rest * near).sum())
            along = near + (size / before) * along
        return step

    def walk(self, weights: Floats, by: Floats, loss: float) -> tuple[Floats, float]:
        """Go as far in a direction as it does not make things worse: all of it, or a half, a quarter, …"""
        share = 1.0
        while share > _LEAST_SHARE:
            tried = weights + share * by
            found = self.loss(tried)
            if found <= loss:
                return tried, found
            share /= 2
        return weights, loss

    def curve(self, weights: Floats) -> Floats:
        """The curvature as a matrix."""
        rows, width = self.data.rows.astype(np.int64), len(weights) + 1
        _, spread = self.slope_and_spread(weights)
        each = np.repeat(spread, rows.shape[1])
        whole = np.zeros(width * width)
        for column in range(rows.shape[1]):
            places = (rows[:, column : column + 1] * width + rows).ravel()
            whole += np.bincount(places, each, width * width)
        inner: Floats = whole.reshape(width, width)[:-1, :-1] + np.diag(self.penalty)
        return inner


def _problem(data: Data, n: Floats, y: Floats, ridge: float) -> _Problem:
    penalty = np.full(len(data.names), ridge)
    penalty[0] = _FREE
    return _Problem(data, n, y, penalty)


def _minimise(problem: _Problem, weights: Floats, tolerance: float) -> Floats:
    """The weights at which the penalised likelihood is highest."""
    loss = problem.loss(weights)
    for _ in range(_STEPS_MAX):
        slope, spread = problem.slope_and_spread(weights)
        before = weights
        weights, loss = problem.walk(weights, problem.solve(spread, slope), loss)
        if float(np.abs(weights - before).max()) < tolerance:
            break
    return weights


def _logits(data: Data, weights: Floats) -> Floats:
    """The logit of every row: the sum of its weights."""
    return np.asarray(np.append(weights, 0.0)[data.rows].sum(axis=1), dtype=np.float64)


def _gathered(data: Data, values: Floats) -> Floats:
    """For every column, the sum of its rows' values."""
    width = len(data.names)
    sums = np.bincount(data.rows.ravel(), np.repeat(values, data.rows.shape[1]), width + 1)
    return np.asarray(sums[:width], dtype=np.float64)


def _chances(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))), dtype=np.float64)


def fit_field(data: Data, ridges: Sequence[float]) -> Field:
    """The field whose ridge did best on held-out folds, calibrated on them."""
    n, y = data.n.sum(axis=1), data.y.sum(axis=1)
    weights = np.zeros(len(data.names))
    fitted: list[tuple[float, Floats]] = []
    for ridge in sorted(ridges, reverse=True):
        weights = _minimise(_problem(data, n, y, ridge), weights, _TOLERANCE)
        fitted.append((ridge, weights))
    tried = [_held_out(data, ridge, weights) for ridge, weights in fitted]
    chosen = _strongest_of_the_best(tried, data)
    (ridge, weights), held = fitted[chosen], tried[chosen]
    shift, slope = _platt(held, data.n, data.y)
    calibration = _calibration(data, held, shift, slope)
    covariance = np.asarray(np.linalg.inv(_problem(data, n, y, ridge).curve(weights)), dtype=np.float64)
    return Field(data.names, weights, covariance, ridge, shift, slope, calibration)


def _held_out(data: Data, ridge: float, start: Floats) -> Floats:
    """The logits of every row in every fold, from weights fitted to the other folds."""
    n, y = data.n.sum(axis=1), data.y.sum(axis=1)
    held = np.zeros_like(data.n)
    for fold in range(data.n.shape[1]):
        rest = _problem(data, n - data.n[:, fold], y - data.y[:, fold], ridge)
        held[:, fold] = _logits(data, _minimise(rest, start, _HELD_TOLERANCE))
    return held


def _strongest_of_the_best(tried: Sequence[Floats], data: Data) -> int:
    """The strongest ridge (they come in that order) that is not worse than the best by more than chance would have it:
    where little is known, what is said stays near what is known of all.
    """
    losses = [_misses(logits) for logits in tried]
    means = [_mean_miss(each, data) for each in losses]
    best = losses[min(range(len(means)), key=lambda at: (round(means[at], 9), at))]
    total = max(1.0, float(data.n.sum()))
    for at, (hit, miss) in enumerate(losses):
        more = data.y * (hit - best[0]) + (data.n - data.y) * (miss - best[1])
        square = data.y * (hit - best[0]) ** 2 + (data.n - data.y) * (miss - best[1]) ** 2
        if float(more.sum()) <= sqrt(float(square.sum())) + 1e-9 * total:
            return at
    return len(losses) - 1


def _misses(logits: Floats) -> tuple[Floats, Floats]:
    """The log loss where it happened, and where it did not."""
    return np.logaddexp(0, -logits), np.logaddexp(0, logits)


def _mean_miss(misses: tuple[Floats, Floats], data: Data) -> float:
    return float((data.y * misses[0] + (data.n - data.y) * misses[1]).sum()) / max(1.0, float(data.n.sum()))


def _platt(logits: Floats, n: Floats, y: Floats) -> tuple[float, float]:
    """Shift and slope of the logits that fit the held-out folds best, drawn a little towards 0 and 1."""
    at = np.array([0.0, 1.0])
    centre = at.copy()
    for _ in range(_STEPS_MAX):
        chance = _chances(at[0] + at[1] * logits)
        miss, weight = y - n * chance, n * chance * (1 - chance)
        slope = np.array([miss.sum(), (miss * logits).sum()]) - (at - centre)
        across = float((weight * logits).sum())
        curve = np.array([[float(weight.sum()) + 1, across], [across, float((weight * logits**2).sum()) + 1]])
        step = np.clip(np.linalg.solve(curve, slope), -1, 1)
        at = at + step
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return float(at[0]), max(float(at[1]), 0.05)


# -- how well it holds ------------------------------------------------------------------------------------


def _calibration(data: Data, held: Floats, shift: float, slope: float) -> Calibration:
    mine = _chances(shift + slope * held)
    raw = _held_rates(data)
    return Calibration(
        ece_before=calibration_error(_chances(held), data.n, data.y),
        ece=calibration_error(mine, data.n, data.y),
        brier=_brier(mine, data.n, data.y),
        ece_raw=calibration_error(raw, data.n, data.y),
        brier_raw=_brier(raw, data.n, data.y),
        log_loss=_log_loss(mine, data.n, data.y),
        log_loss_raw=_log_loss(raw, data.n, data.y),
    )


def _held_rates(data: Data) -> Floats:
    """What plain rates would have said of each fold: the rate of the same cell in the others, else of all cells."""
    n = data.n.sum(axis=1, keepdims=True) - data.n
    y = data.y.sum(axis=1, keepdims=True) - data.y
    overall = float(data.y.sum()) / max(1.0, float(data.n.sum()))
    return np.where(n > 0, y / np.maximum(n, 1), overall)


def calibration_error(chance: Floats, n: Floats, y: Floats) -> float:
    """Expected calibration error: in ten bins of the predicted chance, how far it is from what happened."""
    bins = np.minimum((chance * _BINS).astype(np.int64), _BINS - 1).ravel()
    said = np.bincount(bins, (chance * n).ravel(), _BINS)
    met = np.bincount(bins, y.ravel(), _BINS)
    return float(np.abs(said - met).sum() / max(1.0, float(n.sum())))


def _brier(chance: Floats, n: Floats, y: Floats) -> float:
    return float((y * (1 - chance) ** 2 + (n - y) * chance**2).sum() / max(1.0, float(n.sum())))


def _log_loss(chance: Floats, n: Floats, y: Floats) -> float:
    held = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-(y * np.log(held) + (n - y) * np.log1p(-held)).sum() / max(1.0, float(n.sum())))
