"""Where a line may end: between words, and in Chinese and Japanese between any two signs but before a closing one.

After the general rules of Unicode's UAX #14, as far as terminals need them.
"""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

OPEN = "（「『《〈【［｛“‘"
CLOSE = "，。；：、！？）」』》〉】］｝”’…—％"
WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
_PIECE = re.compile(
    rf"[{OPEN}]*(?:[^\s{WIDE}{OPEN}{CLOSE}]+(?:\s+GB\b|(?<=/)[{WIDE}]+)?|[{WIDE}])[{CLOSE}]*\s*|\S[{CLOSE}]*\s*|\s+"
)
_BLANKS = re.compile(
    r"(?<=[，。；：、！？（）]) +| +(?=[，。；：、！？（）])"
    r"|(?<=\d[年月日]) +(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff]) +(?=\d{4}年)"
)
_WIDE = re.compile(f"[{WIDE}]")


def wide(text: str) -> bool:
    """Does the text hold signs that take two columns of a terminal, and need no blank between words?"""
    return not text.isascii() and _WIDE.search(text) is not None


def closed(text: str) -> str:
    """The text without blanks beside Chinese punctuation and dates, where sentences and values were put together."""
    return _BLANKS.sub("", text) if wide(text) else text


def columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def pieces(text: str) -> list[str]:
    """The text in parts between which a line may end, each with the blanks after it; a number stays with its GB.

    >>> pieces("见 80 GB 的“卡”。")
    ['见 ', '80 GB ', '的', '“卡”。']
    """
    return _PIECE.findall(text)


def broken(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; a piece that is longer stands alone on its line, as it is."""
    lines = [""]
    for piece in pieces(text):
        if lines[-1] and columns((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
