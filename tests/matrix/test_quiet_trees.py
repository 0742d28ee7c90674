"""Trees that nothing disturbs: every strategy does in each of them what the page says."""

import os

import pytest

from tests.matrix.case import Case
from tests.matrix.conftest import CheckCell
from tests.matrix.groups import GROUPS, QUIET_GROUPS, cells_of
from tests.matrix.page import (
    HOW_TO_WRITE,
    PAGE,
    WRITE_VARIABLE,
    page_text,
    read_page,
    read_versions,
)
from tests.matrix.served import NOT_SERVED


@pytest.mark.parametrize(("case", "strategy"), cells_of(QUIET_GROUPS))
def test_the_page_says_what_happens(case: Case, strategy: str, check_cell: CheckCell) -> None:
    check_cell(case, strategy)


@pytest.mark.skipif(WRITE_VARIABLE in os.environ, reason="the page is being written")
def test_the_page_has_the_rows_and_promises_of_the_cases() -> None:
    text = PAGE.read_text()
    anew = page_text(GROUPS, read_page(text), read_versions(text), NOT_SERVED)
    # It is the same: no row is missing, left over or promises something else
    assert anew == text, f"docs/{PAGE.name} differs; look, then: {HOW_TO_WRITE}"
