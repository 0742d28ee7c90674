"""Files that the documentation names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
_NAMED = re.compile(r"`([\w./-]+\.(?:py|rs|toml|tcss))`")
_LINKED = re.compile(r"\]\(([\w./-]+\.md)\)")


_FOLDERS = ("tui_fs", "widgets", "tests", "docs", "engine/src")


def _files() -> list[str]:
    files = [*ROOT.iterdir(), *(ROOT / "engine").iterdir()]
    for folder in _FOLDERS:
        files += (ROOT / folder).rglob("*")
    return [f"/{file.relative_to(ROOT)}" for file in files]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_files_that_a_document_names_exist(document: Path) -> None:
    files = _files()
    named = _NAMED.findall((ROOT / document).read_text(encoding="utf-8"))
    wanted = [name for name in named if not name.endswith("policy.toml")]  # in /etc
    assert [name for name in wanted if not any(f.endswith(f"/{name}") for f in files)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_documents_that_a_document_links_exist(document: Path) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    place = ROOT / document.parent
    assert [link for link in _LINKED.findall(text) if not (place / link).exists()] == []
