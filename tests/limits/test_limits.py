"""Limits that the supervisor meets for a moment end no job."""

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.limits.campaign import Hit, run
from tests.limits.limits import KINDS, why_not_limited
from tests.needs import lacks


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "keeps_root"), zip(KINDS, (False, True, False), strict=True))
def test_a_limit_that_is_reached_for_a_moment_ends_no_job(
    cli: Cli, tmp_path: Path, kind: str, keeps_root: bool
) -> None:
    reason = why_not_limited(kind)
    if reason is not None:
        lacks(reason)
    for after_s in (0.5, 2.6):
        verdict = run(cli, tmp_path, Hit("rm", kind, keeps_root, False, after_s, 1.5))
        assert verdict.was_hit
        assert verdict.faults == ()
