"""The figures of large stores, as `tools/figures.py` puts them into pages, and the drawing of how they grow."""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

__all__ = ["scale", "scale_drawing", "scale_far", "scale_model", "scale_sqlite"]

Results = dict[str, dict[str, Any]]
FAR = 1_000_000_000
_ASKED = {
    "search_cold": "search, nothing in memory",
    "search_warm": "search again",
    "compose": "compose",
    "changes": "`changes`, twice",
    "forget": "forget an event",
    "verify_quick": "`verify --quick`",
    "search_large_cold": "search of the large user, nothing in memory",
    "search_large_warm": "search of the large user again",
}
_BUILT = {"load_s": "loading, s", "index_s": "indexing, s", "store_mb": "store, MB"}


def _rows(results: Results, engine: str) -> dict[int, dict[str, Any]]:
    named = (name.split() for name in results)
    sizes = sorted(int(parts[1]) for parts in named if len(parts) == 2 and parts[0] == engine and parts[1].isdigit())
    return {size: results[f"{engine} {size}"] for size in sizes}


def _taken(row: dict[str, Any], name: str) -> str:
    """The middle of three takes, and between which the others lie."""
    return f"{row[f'{name}_ms']:.1f} ms ({row[f'{name}_ms_low']:.1f}–{row[f'{name}_ms_high']:.1f})"


def scale(results: Results) -> list[str]:
    """PostgreSQL by size: processor time, and how many blocks the server looks at."""
    rows = _rows(results, "postgres")
    head = [f"{size:,} events" for size in rows]
    lines = [f"| | {' | '.join(head)} | ÷ bare SQL |", f"|---|{'---|' * (len(rows) + 1)}"]
    last = rows[max(rows)]
    cells = [f"{row['events_a_core_second']:,.0f}" for row in rows.values()]
    bare = f"{last['load_against_bare']:.1f} (loading)"
    lines.append(f"| loaded and indexed a core and second | {' | '.join(cells)} | {bare} |")
    cells = [f"{row['bytes_an_event']:,.0f}" for row in rows.values()]
    lines.append(f"| bytes an event | {' | '.join(cells)} | |")
    cells = [f"{row['process_mb']:,.0f} MB and {row['compose_server_mb']:,.0f} MB" for row in rows.values()]
    lines.append(f"| memory of the process that asks, and of its server process | {' | '.join(cells)} | |")
    for name, words in _ASKED.items():
        cells = [f"{_taken(row, name)}, {max(row[f'{name}_blocks'], 0):,.0f} blocks" for row in rows.values()]
        bare = f"{last[f'{name}_against_bare']:.1f}" if f"{name}_against_bare" in last else ""
        lines.append(f"| {words} | {' | '.join(cells)} | {bare} |")
    return lines


def scale_sqlite(results: Results) -> list[str]:
    """SQLite by size: processor time, and steps of its machine."""
    rows = _rows(results, "sqlite")
    lines = [f"| | {' | '.join(f'{size:,} events' for size in rows)} |", f"|---|{'---|' * len(rows)}"]
    cells = [f"{row['events_a_core_second']:,.0f}" for row in rows.values()]
    lines.append(f"| loaded and indexed a core and second | {' | '.join(cells)} |")
    cells = [f"{row['bytes_an_event']:,.0f}" for row in rows.values()]
    lines.append(f"| bytes an event | {' | '.join(cells)} |")
    for name, words in _ASKED.items():
        cells = [f"{_taken(row, name)}, {row[f'{name}_steps'] / 1000:,.1f} k steps" for row in rows.values()]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def scale_model(results: Results) -> list[str]:
    """What the smaller sizes told of the largest."""
    told = results["postgres model"]
    last = results[f"postgres {told['held_against']}"]
    fitted = " and ".join(f"{size:,}" for size in told["fitted_to"])
    lines = [f"| | told by {fitted} | measured at {told['held_against']:,} | off by |", "|---|---|---|---|"]
    for name, words in (_BUILT | {f"{each}_ms": f"{words}, ms" for each, words in _ASKED.items()}).items():
        told_, seen, off = told[f"{name}_predicted"], last[name], told[f"{name}_off"]
        lines.append(f"| {words} | {told_:,.1f} | {seen:,.1f} | {off:+.0%} |")
    grown = {words: told[f"{each}_ms_growth"] for each, words in _ASKED.items() if f"{each}_ms_growth" in told}
    sizes = f"from {min(told['fitted_to']):,} events to {told['held_against']:,}"
    lines += [
        "",
        f"{told['within_a_fifth']} of {told['predicted']} are told within 20 %. Growth {sizes}: "
        + ", ".join(f"{words} {times:.2f} ×" for words, times in grown.items())
        + ".",
    ]
    return lines


def scale_far(results: Results) -> list[str]:
    """The line of loading, indexing and bytes, drawn out to a thousand million events."""
    told = results["postgres model"]
    millions = FAR / 1e6
    hours = {name: told[f"{name}_each_million"] * millions / 3600 for name in ("load_s", "index_s")}
    held_tb = told["store_mb_each_million"] * millions / 1e6
    largest = told["held_against"]
    return [
        "| | drawn out |",
        "|---|---|",
        f"| ten million events: loading and indexing, hours of one core | {sum(hours.values()) / 100:,.1f} |",
        f"| a thousand million: loading, hours of one core | {hours['load_s']:,.0f} |",
        f"| indexing, hours of one core | {hours['index_s']:,.0f} |",
        f"| both on 32 cores of processes and server together | {sum(hours.values()) / 32:,.0f} hours |",
        f"| on the disk | {held_tb:.1f} TB |",
        f"| how far that is drawn out | {FAR / largest:,.0f} × the largest store that was measured |",
    ]


# -- the drawing --------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 900, 420, 80, 660, 70, 370
_LABEL = 16
"""From one label to the next."""
_LINES = {
    "search_cold": "#3f6fb0",
    "search_warm": "#7a5ea8",
    "compose": "#2f855a",
    "changes": "#b7791f",
    "forget": "#c05621",
    "verify_quick": "#52606d",
}


def scale_drawing(results: Results) -> str:
    """Processor time of each operation by the size of the store, both in powers of ten, on PostgreSQL."""
    rows = _rows(results, "postgres")
    low, high = log10(min(rows)), log10(max(rows))

    def at(size: int, ms: float) -> tuple[float, float]:
        x = _LEFT + (_RIGHT - _LEFT) * (log10(size) - low) / (high - low)
        return x, _FOOT - (_FOOT - _TOP) * log10(ms) / 3

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
        ' role="img" aria-labelledby="title desc" font-family="system-ui, sans-serif">',
        '<title id="title">What a question costs by the size of the store</title>',
        '<desc id="desc">Milliseconds of processor time on PostgreSQL, of process and server, for the same users'
        f" in stores of {', '.join(f'{size:,}' for size in rows)} events, a line for each operation.</desc>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="10" fill="#fbfaf6"/>',
        _label(_LEFT - 40, 36, "ms of processor time, process and server, PostgreSQL", size=14, weight=600),
    ]
    for ms in (1, 10, 100, 1000):
        _, y = at(min(rows), ms)
        parts += [
            f'<path d="M{_LEFT} {y:.0f} H{_RIGHT}" stroke="#d9dee3"/>',
            _label(_LEFT - 10, y + 4, f"{ms:,}", "end"),
        ]
    for size in rows:
        x, _ = at(size, 1)
        parts.append(_label(x, _FOOT + 24, f"{size:,} events", "middle"))
    for name, colour in _LINES.items():
        points = [at(size, row[f"{name}_ms"]) for size, row in rows.items()]
        path = " L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{colour}"/>' for x, y in points]
    ends = {name: at(max(rows), rows[max(rows)][f"{name}_ms"])[1] for name in _LINES}
    below = float(_HEIGHT)
    for name in sorted(ends, key=lambda each: -ends[each]):  # from below, so that no label stands on another
        below = min(ends[name], below - _LABEL)
        parts.append(_label(_RIGHT + 14, below + 4, _ASKED[name].replace("`", ""), colour=_LINES[name]))
    return "\n".join([*parts, "</svg>", ""])


def _label(
    x: float, y: float, text: str, anchor: str = "start", *, size: int = 12, weight: int = 400, colour: str = "#1f2933"
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
        f' fill="{colour}">{escape(text)}</text>'
    )
