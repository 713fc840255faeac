"""Formulas: LaTeX as MathML, which browsers draw themselves.

The converter copies what it was given into elements and attributes, so its tree is written anew from
a list of what a formula needs.
"""

import re
from html import unescape
from typing import Any

from markupsafe import Markup, escape

VERSION = "formulas-1"

MAX_CHARACTERS = 2_000

FORMULA_TAGS = {
    "math", "menclose", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded",
    "mphantom", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable",
    "mtd", "mtext", "mtr", "munder", "munderover",
}  # fmt: skip
FORMULA_ATTRIBUTES = {
    "accent", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle",
    "fence", "form", "height", "linebreak", "linethickness", "lspace", "mathcolor", "mathsize",
    "mathvariant", "maxsize", "minsize", "notation", "rowlines", "rowspacing", "rspace",
    "scriptlevel", "separator", "stretchy", "symmetric", "voffset", "width",
}  # fmt: skip
_VALUE = re.compile(r"[\w\s.#%+\-]{0,60}")


def render_formula(latex: str, *, is_block: bool) -> Markup | None:
    """Return the formula as MathML, None when it is too long or no formula."""
    if len(latex) > MAX_CHARACTERS:
        return None
    from latex2mathml.converter import convert_to_element  # noqa: PLC0415 - by the first formula

    try:
        tree = convert_to_element(latex, display="block" if is_block else "inline")
        return Markup(_write(tree))  # noqa: S704 - every text in it is escaped
    except Exception:  # noqa: BLE001 - whatever somebody wrote that the converter does not know
        return None


def _write(element: Any) -> str:
    children = "".join(_write(child) + escape_text(child.tail) for child in element)
    content = escape_text(element.text) + children
    if element.tag not in FORMULA_TAGS:
        return content
    attributes = "".join(
        f' {name}="{value}"'
        for name, value in element.attrib.items()
        if name in FORMULA_ATTRIBUTES and _VALUE.fullmatch(value)
    )
    return f"<{element.tag}{attributes}>{content}</{element.tag}>"


def escape_text(text: str | None) -> str:
    return str(escape(unescape(text or "")))
