"""Limits that the supervisor meets for a moment end no job."""

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.limits.campaign import Hit, run
from tests.limits.limits import why_not_limited
from tests.needs import lacks


@pytest.mark.slow
# In mid-run, and when the job ends.
@pytest.mark.parametrize(
    ("kind", "keeps_root", "after_s"),
    (
        ("processes", False, 2.6),
        ("descriptors", True, 0.5),
        ("descriptors", False, 2.6),
        ("memory", False, 0.5),
    ),
)
def test_a_limit_that_is_reached_for_a_moment_ends_no_job(
    cli: Cli, tmp_path: Path, kind: str, keeps_root: bool, after_s: float
) -> None:
    reason = why_not_limited(kind)
    if reason is not None:
        lacks(reason)
    verdict = run(cli, tmp_path, Hit("rm", kind, keeps_root, False, after_s, 1.5))
    assert verdict.was_hit
    assert verdict.faults == ()
