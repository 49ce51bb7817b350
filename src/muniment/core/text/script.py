"""Which of the two languages that research is written in a text calls for: Chinese, or English for all the rest."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Written", "written_in"]

Written = Literal["en", "zh"]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_HANGUL = re.compile("[\u3041-\u30ff\uac00-\ud7a3]")
_WORD = re.compile(r"[^\W\d_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")


def written_in(text: str) -> Written:
    """Chinese where Han signs outnumber other words, and kana and Hangul do not stand among them."""
    han = len(_HAN.findall(text))
    other = len(_KANA_HANGUL.findall(text))
    return "zh" if han and han >= len(_WORD.findall(text)) and other * 10 <= han else "en"
