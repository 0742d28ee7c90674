"""Each pathology is found on each file system that has it, and nothing else is."""

import pytest

from tests.conftest import Cli
from tests.contracts.backends import assert_same
from tests.pathologies.case import Made, Pathology, Scene
from tests.pathologies.counting import totals_of_tools
from tests.pathologies.grounds import Grounds
from tests.pathologies.looking import (
    Printed,
    made,
    matching,
    survey_here,
    survey_with,
    undeserved,
)
from tests.pathologies.register import PATHOLOGIES
from tui_fs.linux.tools import find_engine

# Whether a survey meets a write depends on the moment.
_ATTEMPTS = 5

Place = tuple[Pathology, str]
PLACES: list[Place] = [(case, system) for case in PATHOLOGIES for system in case.filesystems]
SETTLED = [place for place in PLACES if place[0].is_settled]
UNSETTLED = [place for place in PLACES if not place[0].is_settled]
PLACES_WITHOUT = [(case, system) for case in PATHOLOGIES for system in case.not_on]


def _named(place: Place) -> str:
    return f"{place[0].name}-{place[1]}"


@pytest.mark.parametrize("place", SETTLED, ids=_named)
def test_is_found_and_nothing_else_and_counted_as_du_and_find_count_it(
    place: Place, grounds: Grounds, cli: Cli
) -> None:
    case, filesystem = place
    with made(case, filesystem, grounds) as (scene, planted):
        printed = _assert_found(case, scene, planted, cli)
        expected = totals_of_tools(planted.tree)
        assert expected.pop("names of links") >= 0
        if case.is_ordinary:  # that user cannot read all that the tools count as root
            printed = survey_here(planted.tree)
        elif filesystem == case.filesystems[0] and find_engine() is not None:
            assert_same(planted.tree)  # both backends report the same
        assert printed.totals == expected


@pytest.mark.parametrize("place", UNSETTLED, ids=_named)
def test_finds_it_and_nothing_else(place: Place, grounds: Grounds, cli: Cli) -> None:
    case, filesystem = place
    with made(case, filesystem, grounds) as (scene, planted):
        _assert_found(case, scene, planted, cli)


@pytest.mark.parametrize("place", PLACES_WITHOUT, ids=_named)
def test_does_not_find_it_where_it_is_not(place: Place, grounds: Grounds) -> None:
    case, filesystem = place
    with made(case, filesystem, grounds) as (_, planted):
        findings = survey_here(planted.tree).findings

        assert [finding for finding in findings if finding.kind == case.kind] == []
        assert undeserved(case, findings) == []


def _assert_found(case: Pathology, scene: Scene, planted: Made, cli: Cli) -> Printed:
    ordinary = cli.as_ordinary_user(scene.place) if case.is_ordinary else None
    for _ in range(_ATTEMPTS if case.kind == "refilled" else 1):
        printed = survey_with(ordinary, planted.tree) if ordinary else survey_here(planted.tree)
        findings = printed.findings
        if matching(case, planted, findings):
            break

    assert matching(case, planted, findings), (
        f"{case.kind} {case.severity} {planted} not in {findings}"
    )
    assert undeserved(case, findings) == []
    assert all(finding.meaning and finding.advice for finding in findings)
    return printed
