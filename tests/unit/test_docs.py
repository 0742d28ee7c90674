"""Files, links and commands of the documentation are valid, and its lists are complete."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_fs.cli import exit_codes
from tui_fs.cli.parser import parse
from tui_fs.survey.findings.registry import FINDING_TYPES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
_NAMED = re.compile(r"`([\w./-]+\.(?:py|rs|toml|tcss|md))`")
_LINKED = re.compile(r"\]\((?!https?://)([^)#]+)")
_COMMAND = re.compile(r"^    tui-fs( .*)?$", re.MULTILINE)
_FIRST_CELL = re.compile(r"^\| `?([\w-]+)`? \|", re.MULTILINE)

_FOLDERS = ("tui_fs", "widgets", "tests", "docs", "engine/src")


def _text(document: Path | str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def _files() -> list[str]:
    files = [*ROOT.iterdir(), *(ROOT / "engine").iterdir()]
    for folder in _FOLDERS:
        files += (ROOT / folder).rglob("*")
    return [f"/{file.relative_to(ROOT)}" for file in files]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_files_that_a_document_names_exist(document: Path) -> None:
    files = _files()
    named = _NAMED.findall(_text(document))
    wanted = [name for name in named if not name.endswith("policy.toml")]  # in /etc
    assert [name for name in wanted if not any(f.endswith(f"/{name}") for f in files)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_files_that_a_document_links_exist(document: Path) -> None:
    place = ROOT / document.parent
    links = _LINKED.findall(_text(document))
    assert [link for link in links if not (place / link).exists()] == []


def test_the_tests_of_each_promise_exist() -> None:
    cells = re.findall(r"`([\w/]*test_\w+\.py)` \(([^)]*)\)", _text("docs/safety.md"))
    named = {(file, part) for file, words in cells for part in re.findall(r"`(\w+)`", words)}
    assert len(named) > 20
    for file, part in sorted(named):
        texts = [path.read_text() for path in (ROOT / "tests").rglob(Path(file).name)]
        assert any(re.search(rf"def test_\w*{part}", text) for text in texts), (file, part)


def _commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for command in dict.fromkeys(_COMMAND.findall(_text(document))):
            yield str(document), command


@pytest.mark.parametrize(("document", "command"), _commands())
def test_the_parser_accepts_a_command_of_a_document(document: str, command: str) -> None:
    del document
    parse(shlex.split(re.split(" [|>] ", command)[0], comments=True))


def test_the_reference_explains_every_exit_code() -> None:
    codes = {value for value in vars(exit_codes).values() if isinstance(value, int)}
    explained = {
        int(cell)
        for cell in _FIRST_CELL.findall(_text("docs/reference/exit-codes.md"))
        if cell.isdigit()
    }
    assert explained == codes


def test_the_documentation_explains_every_kind_of_finding() -> None:
    cells = _FIRST_CELL.findall(_text("docs/explanation/findings.md"))
    assert sorted(cell for cell in cells if cell != "kind") == sorted(FINDING_TYPES)
