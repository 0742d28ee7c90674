"""A survey as a page: it opens in a browser without a network, and shows what was counted."""

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import Browser, running_browser
from tests.conftest import Cli
from tests.needs import needs_tool
from tests.pathologies.looking import OF_THE_MACHINE
from tests.trees import flat, hostile_names, many_directories

ATTACKS = (
    "</script><script>document.title='attacked'<",
    "<img src=x onerror=\"document.title='attacked'\">",
    "\"'&lt;b&gt;",
)
CELLS = "[...document.querySelectorAll('#treemap > [data-index]')]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    needs_tool("chromium", "chromium")
    with running_browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    hostile_names(root / "hostile")
    many_directories(root / "many", 5, 40)
    flat(root / "flat", 600)
    (root / "large").mkdir()
    (root / "large" / "data").write_bytes(b"x" * 3_000_000)
    for name in ATTACKS:
        (root / "names" / name.replace("/", "|")).mkdir(parents=True)
        (root / "names" / name.replace("/", "|") / "file").write_bytes(b"x" * 9_000)
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(100 << 20)
    os.sync()
    return root


@pytest.fixture
def page(cli: Cli, tree: Path, tmp_path: Path) -> Path:
    file = tmp_path / "report.html"
    done = cli.run("survey", tree, "--report", file).expect(0)
    assert done.stdout.decode() == ""
    assert "report.html" in done.stderr
    return file


def shown(browser: Browser) -> str:
    """Return the text of the page as a reader sees it."""
    return str(browser.evaluate("document.body.innerText"))


def cell(browser: Browser, name: str) -> str:
    """Return the selector of a directory in the treemap."""
    ends = f"c => c.title.split('\\n')[0].endsWith({json.dumps('/' + name)})"
    index = browser.evaluate(f"{CELLS}.find({ends}).dataset.index")
    return f"#treemap > [data-index='{index}']"


def test_opens_without_a_problem_and_asks_for_nothing(browser: Browser, page: Path) -> None:
    browser.problems.clear()
    browser.requests.clear()
    browser.open(page)
    assert browser.problems == []
    requests = [url for url in browser.requests if not url.startswith("data:")]
    assert requests == [page.as_uri()]
    assert browser.evaluate("document.querySelectorAll('#treemap [data-index]').length") > 5


def test_shows_what_the_survey_counts(browser: Browser, page: Path, cli: Cli, tree: Path) -> None:
    counted: dict[str, Any] = cli.run("survey", tree, "--json").object()
    browser.open(page)
    text = shown(browser)
    pairs = dict(re.findall(r"^(entries|files|directories|inodes)\n([\d,]+)$", text, re.M))
    assert pairs == {name: f"{counted[name]:,}" for name in pairs}
    assert len(pairs) == 4
    of_the_tree = [each for each in counted["pathologies"] if each["kind"] not in OF_THE_MACHINE]
    assert of_the_tree
    for finding in of_the_tree:
        assert finding["meaning"] in text
    assert "100.0 MiB" in text  # the largest file, with a hole
    assert os.uname().nodename in text


def test_hostile_names_are_text(browser: Browser, page: Path) -> None:
    browser.problems.clear()
    browser.open(page)
    assert browser.evaluate("document.title").endswith("tui-fs survey")
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    browser.click(cell(browser, "names"))
    labels = browser.evaluate("document.getElementById('treemap').innerText")
    for name in ATTACKS:
        assert name.replace("/", "|") in labels
    assert browser.problems == []


def test_a_click_opens_a_directory_and_escape_leaves_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    trail = "document.getElementById('trail').innerText"
    before = browser.evaluate(trail)
    browser.click(cell(browser, "many"))
    assert "many" in browser.evaluate(trail)
    titles = browser.evaluate(f"{CELLS}.map(c => c.title)")
    assert len(titles) == 5
    assert all("/many/" in title for title in titles)
    browser.press("Escape")
    assert browser.evaluate(trail) == before


def test_areas_are_in_proportion(browser: Browser, page: Path, cli: Cli, tree: Path) -> None:
    browser.open(page)
    browser.click("[data-by=entries]")
    cells = browser.evaluate(
        f"{CELLS}.map(c => [c.title, c.getBoundingClientRect()])"
        ".map(([title, box]) => [title, box.width * box.height])"
    )
    areas: dict[str, float] = {}
    for title, area in cells:
        path, words = title.split("\n")
        entries = int(words.split()[0].replace(",", ""))
        assert cli.run("survey", path, "--json").object()["entries"] == entries
        areas[path] = area / entries
    assert len(areas) >= 3
    assert max(areas.values()) < 1.1 * min(areas.values())
    browser.click("[data-by=bytes]")
    largest = browser.evaluate(f"{CELLS}[0].title")
    assert largest.startswith(f"{tree}/large\n")


def test_fits_narrow_screens_and_paper(browser: Browser, page: Path) -> None:
    for width in (360, 1_200):
        browser.open(page, width)
        # Fonts differ between machines, and paths have no spaces.
        for spacing in ("normal", ".2em"):
            browser.evaluate(f"document.body.style.letterSpacing = '{spacing}'")
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
    printed = base64.b64decode(browser.ask("Page.printToPDF", printBackground=False)["data"])
    assert printed.startswith(b"%PDF")


def test_an_imported_survey_has_the_same_page(
    cli: Cli, page: Path, tree: Path, tmp_path: Path
) -> None:
    export, file = tmp_path / "survey.json", tmp_path / "imported.html"
    cli.run("survey", tree, "--export", export).expect(0)
    cli.run("survey", "--import", export, "--report", file).expect(0)
    content = file.read_text()
    assert "an exported file" in content
    # It may have been written elsewhere
    assert "<dt>machine</dt>" in page.read_text() and "<dt>machine</dt>" not in content


def test_a_page_and_an_export_are_two_commands(cli: Cli, tree: Path, tmp_path: Path) -> None:
    both = cli.run(
        "survey", tree, "--report", tmp_path / "a.html", "--export", tmp_path / "a.json"
    ).expect(2)
    assert "mutually exclusive" in both.stderr
    assert not list(tmp_path.glob("a.*"))


def test_ages_and_sizes_are_those_of_the_survey(browser: Browser, page: Path, cli: Cli) -> None:
    counted: dict[str, Any] = cli.run("survey", page.parent / "root", "--json").object()
    browser.open(page)
    rows = "[...document.querySelectorAll('.chart tbody tr')].map(r => r.cells[2].innerText)"
    bins = [*counted["ages"], *counted["sizes"]]
    assert browser.evaluate(rows) == [f"{each['entries']:,}" for each in bins]
    (widest,) = browser.evaluate(
        "[[...document.querySelectorAll('.chart rect')].map(r => r.getBoundingClientRect().width)"
        ".reduce((a, b) => Math.max(a, b))]"
    )
    assert widest > 50
