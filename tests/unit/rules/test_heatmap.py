"""The heat map: well-formed, every number in it, nothing unescaped, the same bytes; PNG where matplotlib is there."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from muniment.contracts.rules import FlowMapSnapshot
from muniment.errors import InvalidInput
from muniment.rules._flow_picture import DARK, LIGHT, STEPS, heat_grid, step_of, to_heatmap_svg
from products import for_each

SVG = "{http://www.w3.org/2000/svg}"


def spot(stage: str, code: str | None, rate: float, n: int = 100, **more: Any) -> dict[str, Any]:
    return {"stage": stage, "reason_code": code, "risk_rate": rate, "support_n": n, **more}


def snapshot(*spots: dict[str, Any], gains: tuple[dict[str, Any], ...] = (), bucket: str = "*") -> FlowMapSnapshot:
    return FlowMapSnapshot.from_wire(
        {
            "schema_version": "0.5.15",
            "generated_at": "2026-03-01T00:00:00Z",
            "window": {"start_at": "2026-02-01T00:00:00Z", "end_at": "2026-03-01T00:00:00Z"},
            "bucket_key": bucket,
            "estimator": {"kind": "aggregate_v1"},
            "risk": {"stage_hotspots": list(spots)},
            "opportunity": {"interventions": list(gains)},
        }
    )


USUAL = snapshot(
    spot("main→verify", None, 0.4, 12_345, risky_n=4_938, lower=0.38, upper=0.42),
    spot("main→verify", "numeric_error", 0.123, 12_345, risky_n=1_518),
    spot("synth→verify", "numeric_error", 1.0, 3, risky_n=3, thin=True),
    gains=(
        {"intervention": "hints", "gain_pass": 0.1, "delta_cost": 12.0, "support_n": 40, "lower": 0.02, "upper": 0.2},
        {"intervention": "mode:sot", "gain_pass": -0.1, "delta_cost": 1.0, "support_n": 9},
    ),
)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.req("RC-23")
def test_every_cell_has_its_number_and_its_support() -> None:
    said = texts(to_heatmap_svg(USUAL))
    for text in ("40.0 %", "4,938 of 12k", "12.3 %", "100 %", "3 of 3", "all", "numeric_error", "main→verify", "–"):
        assert text in said
    assert "+10.0 pt (+2.0 pt to +20.0 pt) · cost +12 · 40 runs" in said
    assert "−10.0 pt (−10.0 pt to −10.0 pt) · cost +1.0 · 9 runs" in said
    assert said[0].startswith("Flow map")
    assert said[1] == "all buckets · 2026-02-01 00:00 to 2026-03-01 00:00 · aggregate_v1"


def test_the_legend_names_every_step() -> None:
    said = texts(to_heatmap_svg(USUAL))
    assert [f"{100 * step:g} %" for step in STEPS] == [text for text in said if text in _LEGEND][: len(STEPS)]


_LEGEND = ("0 %", "1 %", "2.5 %", "5 %", "10 %", "20 %", "35 %", "50 %", "75 %")


@for_each(("rate", "step"), [(0.0, 0), (0.009, 0), (0.01, 1), (0.34, 5), (0.35, 6), (0.75, 8), (1.0, 8)])
def test_colours_begin_where_the_legend_says(rate: float, step: int) -> None:
    assert step_of(rate) == step


def test_thin_cells_are_marked() -> None:
    root = ElementTree.fromstring(to_heatmap_svg(USUAL))
    assert [each.get("class") for each in root.iter(f"{SVG}rect") if "thin" in (each.get("class") or "")] == ["h8 thin"]


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.req("RC-23")
@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_ink_can_be_read_on_every_colour_in_both_schemes(theme: Any, colours: tuple[str, ...]) -> None:
    """As WCAG asks of text: 4.5 to 1."""
    style = ElementTree.fromstring(to_heatmap_svg(USUAL, theme)).findtext(f"{SVG}style") or ""
    ink = re.findall(r"text\{fill:(#\w+)\}", style)[-1]
    turned = dict(re.findall(r"\.t(\d)\{fill:(#\w+)\}", style))
    for step, colour in enumerate(colours):
        assert _contrast(turned.get(str(step), ink), colour) >= 4.5, (theme, step)
    paper = re.findall(r"\.paper\{fill:(#\w+)\}", style)[-1]
    soft = re.findall(r"\.soft\{fill:(#\w+)\}", style)[-1]
    assert min(_contrast(ink, paper), _contrast(soft, paper)) >= 4.5


def test_auto_follows_the_readers_scheme() -> None:
    svg = to_heatmap_svg(USUAL)
    assert "prefers-color-scheme:dark" in svg
    assert "var(" not in svg, "not every viewer knows variables"
    assert "prefers-color-scheme" not in to_heatmap_svg(USUAL, "dark")


@pytest.mark.req("RC-23")
def test_text_is_escaped_and_what_xml_cannot_hold_is_replaced() -> None:
    evil = '</text><script>alert("x")</script>\x00\x1b[31m&amp; '
    svg = to_heatmap_svg(snapshot(spot(evil, evil, 0.5), bucket=evil, gains=({"intervention": evil},)))
    root = ElementTree.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in svg
    assert "\x00" not in svg
    assert "\x1b" not in svg


def test_the_same_map_is_the_same_bytes() -> None:
    assert to_heatmap_svg(USUAL) == to_heatmap_svg(FlowMapSnapshot.from_wire(USUAL.to_wire()))


def test_what_does_not_fit_is_told() -> None:
    many = [spot("main→verify", f"code_{at}", 0.01 * at) for at in range(1, 40)]
    grid = heat_grid(snapshot(*many))
    assert len(grid.codes) == 16
    assert grid.codes[0] == "code_39", "worst first"
    assert grid.left_out == "Not drawn: 23 more codes."
    assert grid.left_out in texts(to_heatmap_svg(snapshot(*many)))


def test_all_that_is_drawn_is_within_the_picture() -> None:
    wide = snapshot(*(spot("한국어 단계 이름이 아주 길다→verify", f"{'x' * 60}{at}", 0.3) for at in range(20)))
    for each in (USUAL, wide, snapshot(spot("s", None, 0.2))):
        root = ElementTree.fromstring(to_heatmap_svg(each))
        width, height = float(root.get("width", "0")), float(root.get("height", "0"))
        for box in root.iter(f"{SVG}rect"):
            assert float(box.get("x", "0")) + float(box.get("width", "0")) <= width
            assert float(box.get("y", "0")) + float(box.get("height", "0")) <= height
        for text in root.iter(f"{SVG}text"):
            assert 0 <= float(text.get("x", "0")) <= width
            assert 0 <= float(text.get("y", "0")) <= height


def test_a_map_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to draw"):
        to_heatmap_svg(snapshot())
