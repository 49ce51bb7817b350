"""A flow map as an SVG picture."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Literal, NamedTuple
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from muniment.contracts.rules import FlowMapSnapshot, Intervention, StageHotspot
from muniment.errors import InvalidInput
from muniment.verify.junit import xml_text

# == heat grid ========================================================================================================

ALL = "all"
"""The column for a stage as a whole."""
STEPS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
"""Lower bound of each colour. Fixed, so that maps can be compared."""
_CODES_MAX = 16
_STAGES_MAX = 24
_LIFTS_MAX = 12
_CHARS_MAX = 30


class HeatCell(NamedTuple):
    """Failure rate of the stage's logs with a code, and the number of such logs."""

    rate: float
    n: int
    risky: int | None
    thin: bool
    hint: str
    """Tooltip text with all known figures."""


class Lift(NamedTuple):
    """An intervention drawn as a line: its gain and bounds."""

    name: str
    gain: float
    lower: float
    upper: float
    cost: float
    n: int


class HeatGrid(NamedTuple):
    title: str
    subtitle: str
    stages: tuple[str, ...]
    codes: tuple[str, ...]
    cells: dict[tuple[str, str], HeatCell]
    lifts: tuple[Lift, ...]
    left_out: str
    """A note on parts of the map that were not drawn; empty if there are none."""


def step_of(rate: float) -> int:
    """The index of the colour for a rate."""
    return bisect_right(STEPS, rate) - 1


def heat_grid(snapshot: FlowMapSnapshot) -> HeatGrid:
    """The grid of a map. Raises `InvalidInput` for a map without hotspots, as there is nothing to draw."""
    spots = [each for each in snapshot.risk.stage_hotspots or () if each.stage is not None]
    if not spots:
        raise InvalidInput("nothing went wrong in this window: there is nothing to draw", path="$.risk.stage_hotspots")
    stages = _ranked(spots, lambda each: str(each.stage))
    codes = _ranked([each for each in spots if each.reason_code is not None], lambda each: str(each.reason_code))
    columns = ((ALL,) if any(each.reason_code is None for each in spots) else ()) + codes[:_CODES_MAX]
    gains = snapshot.opportunity.interventions or ()
    return HeatGrid(
        title="Flow map: where runs go wrong",
        subtitle=_subtitle(snapshot),
        stages=stages[:_STAGES_MAX],
        codes=columns,
        cells={(str(each.stage), each.reason_code or ALL): _grid_cell(each) for each in spots},
        lifts=tuple(_lift(each) for each in gains[:_LIFTS_MAX]),
        left_out=_left_out(len(stages), len(codes), len(gains)),
    )


def short(text: str) -> str:
    """Shorten a label to fit."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= _CHARS_MAX else shown[: _CHARS_MAX - 1] + "…"


def _ranked(spots: list[StageHotspot], name: Any) -> tuple[str, ...]:
    """Names ordered by their number of failed logs, most first."""
    mass: dict[str, float] = {}
    for each in spots:
        mass[name(each)] = mass.get(name(each), 0.0) + (each.risk_rate or 0.0) * (each.support_n or 0)
    return tuple(sorted(mass, key=lambda key: (-mass[key], key)))


def _number(record: StageHotspot | Intervention, name: str, default: float) -> float:
    value = (record.__pydantic_extra__ or {}).get(name)
    return float(value) if isinstance(value, int | float) else default


def _grid_cell(spot: StageHotspot) -> HeatCell:
    rate, n = min(max(spot.risk_rate or 0.0, 0.0), 1.0), spot.support_n or 0
    risky = (spot.__pydantic_extra__ or {}).get("risky_n")
    lower, upper = _number(spot, "lower", rate), _number(spot, "upper", rate)
    hint = f"{spot.stage} · {spot.reason_code or 'all'}: {rate:.1%} ({lower:.1%} to {upper:.1%}), {n:,} logs"
    thin = bool((spot.__pydantic_extra__ or {}).get("thin", False))
    return HeatCell(rate, n, risky if isinstance(risky, int) else None, thin, hint)


def _lift(given: Intervention) -> Lift:
    gain = given.gain_pass or 0.0
    lower, upper = _number(given, "lower", gain), _number(given, "upper", gain)
    return Lift(given.intervention or "?", gain, lower, upper, given.delta_cost or 0.0, given.support_n or 0)


def _subtitle(snapshot: FlowMapSnapshot) -> str:
    bucket = "all buckets" if snapshot.bucket_key == "*" else snapshot.bucket_key
    window = snapshot.window
    when = f"{window.start_at[:16]} to {window.end_at[:16]}".replace("T", " ") if window is not None else "all time"
    kind = None if snapshot.estimator is None else snapshot.estimator.kind
    return " · ".join(part for part in (bucket, when, kind) if part)


def _left_out(stages: int, codes: int, gains: int) -> str:
    over = {"stages": stages - _STAGES_MAX, "codes": codes - _CODES_MAX, "interventions": gains - _LIFTS_MAX}
    said = [f"{count} more {name}" for name, count in over.items() if count > 0]
    return f"Not drawn: {', '.join(said)}." if said else ""


# == heatmap ==========================================================================================================

Theme = Literal["auto", "light", "dark"]

LIGHT = ("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc8d59", "#ef6548", "#d7301f", "#b30000", "#7f0000")
DARK = ("#2c221d", "#43291f", "#5d3121", "#7b3a22", "#9a4526", "#a84a27", "#d8723f", "#ef9a63", "#ffcda4")
_CELL_W, _CELL_H, _GAP = 86, 42, 2
_MARGIN = 24
_CHAR_W = 6.9
_TILT = 35
_TILT_UP = 0.574
_LINE = 26
_LIFT_W = 320
_FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"


def to_heatmap_svg(snapshot: FlowMapSnapshot, theme: Theme = "auto") -> str:
    """Draw the map; `auto` follows the reader's colour scheme."""
    grid = heat_grid(snapshot)
    left = _MARGIN + max(map(_width, (*grid.stages, *(lift.name for lift in grid.lifts)))) + 12
    reach = max(map(_width, grid.codes))
    top = 62 + reach * _TILT_UP + 24
    right = left + len(grid.codes) * (_CELL_W + _GAP)
    width = max(right + 0.82 * reach, left + _LIFT_W + 330, left + len(STEPS) * 58 + 80) + _MARGIN
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
    SubElement(root, "title").text = xml_text(f"{grid.title} ({grid.subtitle})")
    SubElement(root, "style").text = _style(theme)
    paper = SubElement(root, "rect", {"class": "paper", "x": "0", "y": "0"})
    _text(root, _MARGIN, 34, grid.title, "title")
    _text(root, _MARGIN, 56, grid.subtitle, "soft")
    _heads(root, grid, left, top)
    bottom = _body(root, grid, left, top)
    bottom = _legend(root, left, bottom + 18)
    bottom = _lifts(root, grid.lifts, left, bottom + 34) if grid.lifts else bottom
    for line in (grid.left_out, *FOOT):
        if line:
            bottom += 18
            _text(root, _MARGIN, bottom, line, "soft small")
    height = bottom + _MARGIN
    size = {"width": _px(width), "height": _px(height)}
    root.attrib.update(size, viewBox=f"0 0 {_px(width)} {_px(height)}")
    paper.attrib.update(size)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


FOOT = (
    "A cell: of the stage's logs, how many failed, were partial or could not be confirmed, with that reason.",
    "A log may have several reasons. Dashed: too few logs to rely on.",
)


# -- parts ------------------------------------------------------------------------------------------------


def _heads(root: Element, grid: HeatGrid, left: float, top: float) -> None:
    for at, code in enumerate(grid.codes):
        x, y = left + at * (_CELL_W + _GAP) + _CELL_W / 2 - 6, top - 8
        turn = {"transform": f"rotate(-{_TILT} {_px(x)} {_px(y)})"}
        _text(root, x, y, short(code), "strong" if at == 0 and code == "all" else "", turn)


def _body(root: Element, grid: HeatGrid, left: float, top: float) -> float:
    for row, stage in enumerate(grid.stages):
        y = top + row * (_CELL_H + _GAP)
        _text(root, left - 12, y + _CELL_H / 2 + 4, short(stage), "strong", {"text-anchor": "end"})
        for column, code in enumerate(grid.codes):
            x = left + column * (_CELL_W + _GAP)
            _cell(root, x, y, grid.cells.get((stage, code)))
    return top + len(grid.stages) * (_CELL_H + _GAP)


def _cell(root: Element, x: float, y: float, cell: HeatCell | None) -> None:
    if cell is None:
        _box(root, x, y, _CELL_W, _CELL_H, "none")
        _text(root, x + _CELL_W / 2, y + _CELL_H / 2 + 4, "–", "soft", {"text-anchor": "middle"})
        return
    group = SubElement(root, "g")
    SubElement(group, "title").text = xml_text(cell.hint)
    step = step_of(cell.rate)
    _box(group, x, y, _CELL_W, _CELL_H, f"h{step}{' thin' if cell.thin else ''}")
    middle = {"text-anchor": "middle"}
    _text(group, x + _CELL_W / 2, y + 19, percent_text(cell.rate), f"number t{step}", middle)
    _text(group, x + _CELL_W / 2, y + 34, support_text(cell), f"small t{step}", middle)


def _legend(root: Element, left: float, top: float) -> float:
    _text(root, left - 12, top + 13, "risk", "soft", {"text-anchor": "end"})
    for step, start in enumerate(STEPS):
        _box(root, left + step * 58, top, 56, 16, f"h{step}")
        _text(root, left + step * 58, top + 32, f"{100 * start:g} %", "soft small")
    _text(root, left + len(STEPS) * 58, top + 32, "100 %", "soft small")
    return top + 36


def _lifts(root: Element, lifts: tuple[Lift, ...], left: float, top: float) -> float:
    """Draw each gain as a dot between its bounds; the vertical line through all of them is zero gain."""
    reach = max(0.05, max(max(abs(lift.lower), abs(lift.upper)) for lift in lifts))
    scale, middle = _LIFT_W / 2 / reach, left + _LIFT_W / 2
    _text(root, _MARGIN, top, "What interventions bring: change of the pass rate, with bounds", "heading")
    start = top + 14
    end = start + len(lifts) * _LINE
    _line(root, middle, start, middle, end, "axis")
    for at, lift in enumerate(lifts):
        y = start + at * _LINE + _LINE / 2
        tone = "good" if lift.lower > 0 else "bad" if lift.upper < 0 else "open"
        _text(root, left - 12, y + 4, short(lift.name), "strong", {"text-anchor": "end"})
        _line(root, middle + lift.lower * scale, y, middle + lift.upper * scale, y, f"bar {tone}")
        dot = {"cx": _px(middle + lift.gain * scale), "cy": _px(y), "r": "4.5", "class": f"dot {tone}"}
        SubElement(root, "circle", dot)
        _text(root, left + _LIFT_W + 16, y + 4, lift_text(lift), "soft")
    for share in (-reach, reach):
        _text(root, middle + share * scale, end + 14, _points(share), "soft small", {"text-anchor": "middle"})
    _text(root, middle, end + 14, "no change", "soft small", {"text-anchor": "middle"})
    return end + 20


def support_text(cell: HeatCell) -> str:
    return f"of {_count(cell.n)}" if cell.risky is None else f"{_count(cell.risky)} of {_count(cell.n)}"


def lift_text(lift: Lift) -> str:
    """`+15.7 pt (+13.8 pt to +17.5 pt) · cost +500 · 2,260 runs`."""
    bounds = f"{_points(lift.lower)} to {_points(lift.upper)}"
    cost = f"{lift.cost:+,.0f}" if abs(lift.cost) >= 10 else f"{lift.cost:+.1f}"
    return f"{_points(lift.gain)} ({bounds}) · cost {cost} · {_count(lift.n)} runs"


# -- marks ------------------------------------------------------------------------------------------------


def _text(root: Element, x: float, y: float, said: str, kind: str = "", more: dict[str, str] | None = None) -> None:
    attributes = {"x": _px(x), "y": _px(y)} | ({"class": kind} if kind else {}) | (more or {})
    SubElement(root, "text", attributes).text = xml_text(said)


def _box(root: Element, x: float, y: float, width: float, height: float, kind: str) -> None:
    size = {"x": _px(x), "y": _px(y), "width": _px(width), "height": _px(height), "rx": "4", "class": kind}
    SubElement(root, "rect", size)


def _line(root: Element, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
    SubElement(root, "line", {"x1": _px(x1), "y1": _px(y1), "x2": _px(x2), "y2": _px(y2), "class": kind})


def _width(label: str) -> float:
    """The approximate drawn width of a label; East Asian letters are square."""
    return sum(_CHAR_W * (1.8 if east_asian_width(char) in "WF" else 1) for char in short(label))


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def percent_text(rate: float) -> str:
    return f"{100 * rate:.0f} %" if rate >= 0.995 or rate == 0 else f"{100 * rate:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.1f} pt".replace("-", "−")


def _count(n: int) -> str:
    """A number short enough for a cell: 1,234 · 12k · 1.2M."""
    if n < 10_000:
        return f"{n:,}"
    return f"{n / 1_000:.0f}k" if n < 999_500 else f"{n / 1_000_000:.3g}M"


# -- colours ----------------------------------------------------------------------------------------------


class _Tones(NamedTuple):
    """A colour scheme. Colours are written out in each rule, as some viewers do not support CSS variables."""

    paper: str
    ink: str
    soft: str
    edge: str
    good: str
    bad: str
    heat: tuple[str, ...]
    turned: str
    turned_from: int
    """The first colour on which the text colour is inverted."""


_LIGHT_TONES = _Tones("#ffffff", "#1f2328", "#5b636d", "#e3e6ea", "#1a7f37", "#b3261e", LIGHT, "#ffffff", 6)
_DARK_TONES = _Tones("#16181c", "#e8eaed", "#a3abb5", "#33383f", "#5bd17b", "#ff8a7a", DARK, "#1d1410", 6)
_SHAPE = (
    f"text{{{_FONT};font-size:12px}}.title{{font-size:20px;font-weight:bold}}"
    ".heading{font-size:14px;font-weight:bold}.strong{font-weight:bold}.number{font-size:14px;font-weight:bold}"
    ".small{font-size:10.5px}.none{fill:none}.thin{stroke-dasharray:3 3;stroke-width:2}.axis{stroke-dasharray:2 3}"
    ".bar{stroke-width:3;stroke-linecap:round}"
)


def _style(theme: Theme) -> str:
    light, dark = _colours(_LIGHT_TONES), _colours(_DARK_TONES)
    if theme == "auto":
        return f"{_SHAPE}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return _SHAPE + (light if theme == "light" else dark)


def _colours(tones: _Tones) -> str:
    rules = (
        f"text{{fill:{tones.ink}}}.soft{{fill:{tones.soft}}}.paper{{fill:{tones.paper}}}.none{{stroke:{tones.edge}}}"
        f".thin,.axis{{stroke:{tones.soft}}}.good{{stroke:{tones.good};fill:{tones.good}}}"
        f".bad{{stroke:{tones.bad};fill:{tones.bad}}}.open{{stroke:{tones.soft};fill:{tones.soft}}}"
    )
    fills = "".join(f".h{step}{{fill:{colour}}}" for step, colour in enumerate(tones.heat))
    inks = "".join(f".t{step}{{fill:{tones.turned}}}" for step in range(tones.turned_from, len(tones.heat)))
    return rules + fills + inks
