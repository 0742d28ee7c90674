"""Read the texts of the project from its sources: strings, docstrings, comments and documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).parents[2]

_RUST = re.compile(
    r"""'(?:[^'\\]|\\.)'|(?P<comment>//[^\n]*)|"(?P<text>(?:[^"\\]|\\.)*)\"""", re.DOTALL
)
"""A character such as '"' begins no string, and // in a string no comment."""


class Kind(Enum):
    """What a text is."""

    STRING = "string"
    DOCSTRING = "docstring"
    COMMENT = "comment"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text.

    Attributes:
        path: relative to the root of the repository.
        line: of its beginning, from 1.
        text: as in the source; a formatted value is `{…}`.
    """

    path: str
    line: int
    kind: Kind
    text: str


def product_texts() -> Iterator[SourceText]:
    """Yield the texts of the Python packages and of the engine."""
    for package in ("tui_fs", "widgets"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from python_texts(path)
    for path in sorted((ROOT / "engine" / "src").rglob("*.rs")):
        yield from rust_texts(path)


def document_texts() -> Iterator[SourceText]:
    """Yield the paragraphs of the documents: what is read as one text."""
    for path in sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))):
        line = 1
        for paragraph in re.split(r"(\n\s*\n)", path.read_text()):
            if paragraph.strip():
                yield SourceText(_relative(path), line, Kind.DOCUMENT, paragraph)
            line += paragraph.count("\n")


def python_texts(path: Path) -> Iterator[SourceText]:
    """Yield the strings, docstrings and comments of a Python module."""
    source = path.read_text()
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        text = _text_of(node)
        if text is not None and isinstance(node, ast.expr):
            kind = Kind.DOCSTRING if id(node) in docstrings else Kind.STRING
            yield SourceText(_relative(path), node.lineno, kind, text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield SourceText(_relative(path), token.start[0], Kind.COMMENT, token.string)


def rust_texts(path: Path) -> Iterator[SourceText]:
    """Yield the string literals and comments of a Rust module."""
    source = path.read_text()
    for match in _RUST.finditer(source):
        if match["comment"] is None and match["text"] is None:
            continue  # a character
        line = source.count("\n", 0, match.start()) + 1
        kind = Kind.STRING if match["text"] is not None else Kind.COMMENT
        yield SourceText(_relative(path), line, kind, match["text"] or match[0])


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (_text_of(part) for part in node.values)
        return "".join("{…}" if part is None else part for part in parts)
    return None


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))
