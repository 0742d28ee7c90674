"""Trees behind a server: parallel does in each what the page says, also when the server fails."""

import pytest

from tests.matrix.case import Case
from tests.matrix.conftest import CheckCell, CheckServed
from tests.matrix.groups import GROUPS, SERVED_GROUPS, cells_of
from tests.matrix.served import CASES_WITHOUT_TYPES, LONG, NOT_SERVED, SERVED_CASES, WITHOUT_TYPES


# The cases without types are served late, too.
@pytest.mark.parametrize(
    "case",
    [case for case in SERVED_CASES if case not in CASES_WITHOUT_TYPES],
    ids=lambda case: case.name,
)
def test_parallel_does_the_same_where_a_server_answers_late(
    case: Case, check_served: CheckServed
) -> None:
    check_served(case, ())


@pytest.mark.parametrize("case", CASES_WITHOUT_TYPES, ids=lambda case: case.name)
def test_parallel_does_the_same_where_types_are_unknown(
    case: Case, check_served: CheckServed
) -> None:
    check_served(case, WITHOUT_TYPES)


@pytest.mark.parametrize(("case", "strategy"), cells_of(SERVED_GROUPS))
def test_the_page_says_what_happens(case: Case, strategy: str, check_cell: CheckCell) -> None:
    check_cell(case, strategy)


def test_each_case_with_an_exception_is_a_row_of_the_page() -> None:
    names = {case.name for group in GROUPS for case in group.cases}
    assert NOT_SERVED.keys() | LONG <= names
    assert len(CASES_WITHOUT_TYPES) == 7
