"""A near pathology is not reported as one, or not as a graver one."""

import os

import pytest

from tests.pathologies.case import Pathology
from tests.pathologies.grounds import Grounds
from tests.pathologies.looking import is_as_grave, made, survey_here, undeserved
from tests.pathologies.near import NEAR


@pytest.mark.parametrize("case", NEAR, ids=lambda case: case.name)
def test_is_not_reported(case: Pathology, grounds: Grounds) -> None:
    (filesystem,) = case.filesystems
    with made(case, filesystem, grounds) as (_, planted):
        findings = survey_here(planted.tree).findings

        of_kind = [finding for finding in findings if finding.kind == case.kind]
        assert [
            finding for finding in of_kind if is_as_grave(finding.severity, case.severity)
        ] == []
        assert undeserved(case, findings) == []


def test_a_file_of_several_names_is_reported_once(grounds: Grounds) -> None:
    tree = grounds.directory_on("ext4")
    sparse = tree / "disk.img"
    sparse.touch()
    os.truncate(sparse, 100 << 20)
    for number in range(3):
        os.link(sparse, tree / f"again-{number}")

    findings = survey_here(tree).findings

    assert [finding.kind for finding in findings] == ["sparse"]
