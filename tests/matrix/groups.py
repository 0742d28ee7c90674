"""All groups of the matrix in the order of the page, the most dangerous first."""

from collections.abc import Iterable

import pytest

from tests.matrix.case import Group
from tests.matrix.disk_cases import DISKS
from tests.matrix.disturbed_cases import ENDINGS, OTHERS
from tests.matrix.outside_cases import OUTSIDE
from tests.matrix.rights_cases import RIGHTS_OF_AN_ORDINARY_USER, RIGHTS_OF_ROOT
from tests.matrix.served_cases import SERVER_FAULTS
from tests.matrix.shape_cases import SHAPES

QUIET_GROUPS = (OUTSIDE, SHAPES, RIGHTS_OF_ROOT, RIGHTS_OF_AN_ORDINARY_USER)
DISTURBED_GROUPS = (OTHERS, ENDINGS, DISKS)
SERVED_GROUPS = (SERVER_FAULTS,)
GROUPS = (
    *(OUTSIDE, OTHERS, SHAPES, RIGHTS_OF_ROOT, RIGHTS_OF_AN_ORDINARY_USER, ENDINGS, DISKS),
    SERVER_FAULTS,
)


def cells_of(groups: Iterable[Group]) -> list[object]:
    """Return every case of the groups with each of their strategies, as parameters of a test."""
    return [
        pytest.param(case, strategy, id=f"{case.name}-{strategy}")
        for group in groups
        for case in group.cases
        for strategy in group.strategies
        if strategy not in case.not_for
    ]
