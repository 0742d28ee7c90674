"""Each pathology is found on each file system that has it, and nothing else is."""

from collections.abc import Iterator

import pytest

from tests.conftest import Cli
from tests.pathologies.case import Made, Pathology, Scene
from tests.pathologies.counting import totals_of_survey, totals_of_tools
from tests.pathologies.grounds import Grounds
from tests.pathologies.looking import (
    made,
    matching,
    survey_here,
    survey_with,
    undeserved,
)
from tests.pathologies.register import PATHOLOGIES
from tui_fs.model.finding import Finding

# Whether a survey meets a write depends on the moment.
_ATTEMPTS = 5

Place = tuple[Pathology, str]
PLACES: list[Place] = [(case, system) for case in PATHOLOGIES for system in case.filesystems]
SETTLED = [place for place in PLACES if place[0].is_settled]
UNSETTLED = [place for place in PLACES if not place[0].is_settled]
PLACES_WITHOUT = [(case, system) for case in PATHOLOGIES for system in case.not_on]


def _named(place: Place) -> str:
    return f"{place[0].name}-{place[1]}"


@pytest.fixture(scope="class")
def settled(
    request: pytest.FixtureRequest, grounds: Grounds
) -> Iterator[tuple[Pathology, Scene, Made]]:
    """Make a tree once for all tests of it."""
    case, filesystem = request.param
    with made(case, filesystem, grounds) as (scene, what):
        yield case, scene, what


@pytest.mark.parametrize("settled", SETTLED, indirect=True, ids=_named)
class TestSettledTree:
    """What can be said of a tree that nobody changes."""

    def test_is_found_and_nothing_else(
        self, settled: tuple[Pathology, Scene, Made], cli: Cli
    ) -> None:
        _assert_found(*settled, cli)

    def test_is_counted_as_du_and_find_count_it(
        self, settled: tuple[Pathology, Scene, Made]
    ) -> None:
        _, _, what = settled

        assert totals_of_survey(what.tree) == totals_of_tools(what.tree)


@pytest.mark.parametrize("place", UNSETTLED, ids=_named)
def test_finds_it_and_nothing_else(place: Place, grounds: Grounds, cli: Cli) -> None:
    case, filesystem = place
    with made(case, filesystem, grounds) as (scene, what):
        _assert_found(case, scene, what, cli)


@pytest.mark.parametrize("place", PLACES_WITHOUT, ids=_named)
def test_does_not_find_it_where_it_is_not(place: Place, grounds: Grounds) -> None:
    case, filesystem = place
    with made(case, filesystem, grounds) as (_, what):
        told = survey_here(what.tree)

        assert [finding for finding in told if finding.kind == case.kind] == []
        assert undeserved(case, told) == []


def _assert_found(case: Pathology, scene: Scene, what: Made, cli: Cli) -> None:
    ordinary = cli.as_ordinary_user(scene.place) if case.is_ordinary else None
    told: list[Finding] = []
    for _ in range(_ATTEMPTS if case.kind == "refilled" else 1):
        told = survey_with(ordinary, what.tree) if ordinary else survey_here(what.tree)
        if matching(case, what, told):
            break

    assert matching(case, what, told), f"{case.kind} {case.severity} {what} is not in {told}"
    assert undeserved(case, told) == []
    assert all(finding.meaning and finding.advice for finding in told)
