"""The words of every text: strings, docstrings, comments and documents are in plain English."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.texts.sources import SourceText, document_texts, product_texts, python_texts, rust_texts

_AVOIDED = re.compile(
    r"\b(tells?|telling|told|whoever|whatever|somebody|nobody|so many|shall|lets? go|letting go|"
    r"l(?:ies|ie|ay) in|of which|anew|led (?:outside|astray)|brought back|goes wrong|"
    r"stands? in|stood|look(?:s|ed|ing)? (?:at|into|for|who|where)|looking…|"
    r"what (?:was|is) (?:made|counted|confirmed|meant)|half a character)\b",
    re.IGNORECASE,
)
"""Words of readers' complaints: they hide who acts, or have a second meaning."""

_ALLOWED = {
    # fragment of the text: why the word is right there
    "not-looked-at": "a value in files of earlier jobs",
}


def avoided_words(texts: Iterator[SourceText]) -> list[str]:
    """Return the avoided words of texts, each with its place."""
    found = []
    for text in texts:
        searched = " ".join(text.text.split())
        for fragment in _ALLOWED:
            searched = searched.replace(fragment, "")
        found += [
            f"{text.path}:{text.line}: '{match[0]}' in the {text.kind.value} {searched[:80]!r}"
            for match in _AVOIDED.finditer(searched)
        ]
    return found


def test_product_texts_avoid_words_that_need_a_second_reading() -> None:
    assert avoided_words(product_texts()) == []


def test_documents_avoid_words_that_need_a_second_reading() -> None:
    assert avoided_words(document_texts()) == []


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("m.py", '"""Tell it."""\n', ["tell"]),
        ("m.py", 'x = f"{1} was told " "so"\n', ["told"]),
        ("m.py", "x = 1  # whoever waits\n", ["whoever"]),
        ("m.py", "def f():\n    '''A.'''\n    raise E(f\"so {1} many: nobody\")\n", ["nobody"]),
        ("m.rs", '// what is meant\nlet x = "a tells\\n";\n', ["what is meant", "tells"]),
        ("m.rs", 'let q = \'"\';\nlet x = "it tells"; let y = "//";\n', ["tells"]),
        ("m.py", 'call("not-looked-at", "foretold", "lies, in")\n', []),
    ],
)
def test_every_kind_of_text_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, source: str, words: list[str]
) -> None:
    monkeypatch.setattr("tests.texts.sources.ROOT", tmp_path)
    module = tmp_path / name
    module.write_text(source)
    texts = python_texts(module) if name.endswith(".py") else rust_texts(module)
    assert [line.split("'")[1].lower() for line in avoided_words(texts)] == words
