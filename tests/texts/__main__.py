"""Print every sentence of the program that a person reads, by module: `python -m tests.texts`."""

import re
from itertools import groupby

from tests.texts.sources import Kind, product_texts

_PROSE = re.compile(r"[A-Za-z…}]+[,;:]? [A-Za-z{(\d].*")
"""Two words at least; a wire name, a path, a format has one."""


def main() -> None:
    """Print the sentences."""
    sentences = [
        text
        for text in product_texts()
        if text.kind is Kind.STRING and _PROSE.search(text.text) and "$" not in text.text
    ]
    for path, texts in groupby(sentences, key=lambda text: text.path):
        print(f"\n{path}")
        for text in sorted(texts, key=lambda text: text.line):
            print(f"{text.line:5}  {' '.join(text.text.split())}")
    print(f"\n{len(sentences):,} sentences")


if __name__ == "__main__":
    main()
