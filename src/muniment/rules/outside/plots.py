"""A flow map as a PNG picture, drawn by matplotlib, the extra `plots`; for SVG see `rules.flowmap.heatmap`."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from warnings import catch_warnings, filterwarnings

from muniment.contracts.rules import FlowMapSnapshot
from muniment.core.outside.system import not_installed
from muniment.rules._flow_picture import (
    FOOT,
    LIGHT,
    STEPS,
    HeatGrid,
    Lift,
    heat_grid,
    lift_text,
    percent_text,
    short,
    step_of,
    support_text,
)

__all__ = ["to_heatmap_png"]

_INK, _SOFT, _EDGE = "#1f2328", "#5b636d", "#e3e6ea"
_GOOD, _BAD = "#1a7f37", "#b3261e"
_TURNED_FROM = 6
_DPI = 144


def to_heatmap_png(snapshot: FlowMapSnapshot) -> bytes:
    """The picture of a map."""
    grid = heat_grid(snapshot)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise not_installed("a PNG takes matplotlib", "plots", "take the SVG, which needs nothing") from None
    rows, lines = len(grid.stages), len(grid.lifts)
    width = max(9.5, 2.6 + 0.95 * len(grid.codes))
    heights = [0.5 * rows + 0.2, 0.2, 0.3 * lines + 0.2] if lines else [0.5 * rows + 0.2, 0.2]
    figure = Figure(figsize=(width, sum(heights) + 2.1 + 0.5 * bool(lines)), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _title(figure, grid)
    _cells(axes[0], grid)
    _legend(axes[1])
    if lines:
        _lifts(axes[2], grid.lifts)
    buffer = BytesIO()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # letters that its font lacks are drawn as boxes
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _escaped_text(text: str) -> str:
    """Text as it stands: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")


def _title(figure: Any, grid: HeatGrid) -> None:
    figure.suptitle(_escaped_text(f"{grid.title}\n{grid.subtitle}"), x=0.01, ha="left", fontsize=10, color=_INK)
    foot = " ".join(line for line in (grid.left_out, *FOOT) if line)
    figure.supxlabel(_escaped_text(foot), x=0.01, ha="left", fontsize=6.5, color=_SOFT)


def _cells(axes: Any, grid: HeatGrid) -> None:
    from matplotlib.patches import Rectangle

    for row, stage in enumerate(grid.stages):
        for column, code in enumerate(grid.codes):
            cell = grid.cells.get((stage, code))
            step = None if cell is None else step_of(cell.rate)
            box = Rectangle((column - 0.48, row - 0.47), 0.96, 0.94, facecolor="none" if step is None else LIGHT[step])
            is_thin = cell is not None and cell.thin
            box.set(edgecolor=_SOFT if is_thin else _EDGE, linestyle="--" if is_thin else "-")
            axes.add_patch(box)
            if cell is None or step is None:
                axes.text(column, row, "–", ha="center", va="center", color=_SOFT)
                continue
            ink = "#ffffff" if step >= _TURNED_FROM else _INK
            number = {"ha": "center", "va": "center", "color": ink}
            axes.text(column, row - 0.14, percent_text(cell.rate), fontsize=9.5, fontweight="bold", **number)
            axes.text(column, row + 0.23, support_text(cell), fontsize=6.5, **number)
    axes.set(xlim=(-0.5, len(grid.codes) - 0.5), ylim=(len(grid.stages) - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(grid.codes)), [_escaped_text(short(code)) for code in grid.codes], rotation=35, ha="left")
    axes.set_yticks(range(len(grid.stages)), [_escaped_text(short(stage)) for stage in grid.stages])
    _bare(axes)


def _legend(axes: Any) -> None:
    for step, colour in enumerate(LIGHT):
        axes.barh(0, 1, left=step, color=colour, edgecolor="#ffffff", height=0.9)
    axes.set_xticks(range(len(STEPS) + 1), [f"{100 * start:g} %" for start in (*STEPS, 1.0)])
    axes.set_yticks([0], ["risk"])
    axes.set_xlim(0, max(len(STEPS), 9))
    _bare(axes)


def _lifts(axes: Any, lifts: tuple[Lift, ...]) -> None:
    reach = max(0.05, max(max(abs(lift.lower), abs(lift.upper)) for lift in lifts))
    axes.axvline(0, color=_SOFT, linestyle=":", linewidth=1)
    for at, lift in enumerate(lifts):
        tone = _GOOD if lift.lower > 0 else _BAD if lift.upper < 0 else _SOFT
        axes.plot([lift.lower, lift.upper], [at, at], color=tone, linewidth=2.5, solid_capstyle="round")
        axes.plot([lift.gain], [at], marker="o", color=tone, markersize=5)
        axes.text(1.05 * reach, at, lift_text(lift), va="center", fontsize=7.5, color=_SOFT)
    axes.set(xlim=(-1.02 * reach, 3.3 * reach), ylim=(len(lifts) - 0.5, -0.5))
    axes.set_yticks(range(len(lifts)), [_escaped_text(short(lift.name)) for lift in lifts])
    axes.set_xticks([-reach, 0, reach], [f"−{100 * reach:.1f} pt", "no change", f"+{100 * reach:.1f} pt"])
    axes.set_title("What interventions bring: change of the pass rate, with bounds", loc="left", fontsize=9.5)
    _bare(axes)


def _bare(axes: Any) -> None:
    axes.tick_params(length=0, labelsize=8, labelcolor=_INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
