"""Pages of HTML that need nothing else: they load no file, and they open without a network."""

import base64
import hashlib
import importlib.resources
from collections.abc import Iterable
from html import escape

from tui_fs.model.paths import harmless

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def text(value: str) -> str:
    """Return text escaped for a page or an attribute."""
    return escape(harmless(value), quote=True)


def document(title: str, body: Iterable[str], style: str = "", script: str = "") -> str:
    """Return a whole page.

    Args:
        body: its parts, already escaped; empty ones are left out.
        style: a style sheet in addition to ``page.css``.
        script: the only script that the page may run.
    """
    shared = importlib.resources.files("tui_fs.model").joinpath("page.css").read_text("utf-8")
    policy, code = _POLICY, ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"{_POLICY}; script-src 'sha256-{digest}'"
        code = f"<script>{script}</script>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>\n{shared}{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n</main>\n{code}</body>\n</html>\n"
    )


def section(title: str, content: str) -> str:
    """Return a section; `content` is already escaped."""
    return f"<section><h2>{text(title)}</h2>{content}</section>"


def wide_table(columns: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    """Return a table that can be wider than the page; its rows are already escaped."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    of_kind = f' class="{kind}"' if kind else ""
    return (
        f'<div class="wide"><table{of_kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def pairs(kind: str, items: Iterable[tuple[str, str]]) -> str:
    """Return names with their values; `kind` is the class of the list."""
    shown = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in items
    )
    return f'<dl class="{kind}">{shown}</dl>'
