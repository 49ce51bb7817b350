"""Marks in an answer, back to evidence; the reading itself is shared with the verifier."""

from __future__ import annotations

from muniment.packets.page.answers import CitedSentence, Resolution, resolve

__all__ = ["CitedSentence", "Resolution", "resolve"]
