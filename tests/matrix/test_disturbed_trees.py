"""Disturbed trees, jobs and disks: every strategy does in each what the page says."""

import pytest

from tests.matrix.case import Case
from tests.matrix.conftest import CheckCell
from tests.matrix.groups import DISTURBED_GROUPS, cells_of


@pytest.mark.parametrize(("case", "strategy"), cells_of(DISTURBED_GROUPS))
def test_the_page_says_what_happens(case: Case, strategy: str, check_cell: CheckCell) -> None:
    check_cell(case, strategy)
