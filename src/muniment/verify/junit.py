"""Test results as JUnit XML, which every CI server reads. The same results give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitCase(NamedTuple):
    """One test: its group, name and result."""

    group: str
    name: str
    status: Literal["passed", "failed", "error", "skipped"]
    message: str = ""
    seconds: float | None = None


_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def to_junit(name: str, cases: Sequence[JUnitCase]) -> bytes:
    counts = {status: sum(case.status == status for case in cases) for status in _TAGS}
    totals = {
        "tests": str(len(cases)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
    }
    root = ElementTree.Element("testsuites", {"name": xml_text(name), **totals})
    suite = ElementTree.SubElement(root, "testsuite", {"name": xml_text(name), **totals})
    for case in cases:
        attributes = {"classname": xml_text(case.group), "name": xml_text(case.name)}
        if case.seconds is not None:
            attributes["time"] = f"{case.seconds:.3f}"
        element = ElementTree.SubElement(suite, "testcase", attributes)
        if case.status in _TAGS:
            ElementTree.SubElement(element, _TAGS[case.status], {"message": xml_text(case.message)})
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def xml_text(text: str) -> str:
    """Replace characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
