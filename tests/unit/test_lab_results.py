"""What the events of a run add up to, and what cannot be known from them."""

import pytest

from tests.unit.lab_results import MACHINE, plan
from tui_fs.lab.experiment import Claim, Verdict, judged
from tui_fs.lab.results import NotMeasured, RunBegan, StepCounted, StepPlan, fold
from tui_fs.model.calls import CallCount, TraceSource


def test_what_perf_does_not_count_is_not_told_as_none() -> None:
    # Calls counted by perf, which knows only some of them
    counted = StepCounted("rm", TraceSource.PERF, {"unlinkat": CallCount(10)})
    results = fold([began_of(plan("rm")), counted])
    # When asked for one that it knows, for one that it does not, and for the sum
    assert results.calls("rm", "unlinkat").calls == 10
    assert results.calls("rm", "rmdir").calls == 0
    with pytest.raises(NotMeasured, match="not among the calls that perf counts"):
        results.calls("rm", "socket")
    with pytest.raises(NotMeasured):
        results.total_calls("rm")


def test_a_judge_that_cannot_reckon_makes_its_claim_untested() -> None:
    claim = Claim("It is twice as fast.", "", lambda _: judged(1 / 0 > 2, ""))
    results = fold([began_of(plan("rm"))])
    assert claim.judged(results).verdict is Verdict.UNTESTED


def began_of(*plans: StepPlan) -> RunBegan:
    """Return the beginning of a run with these steps."""
    return RunBegan("one", "small", 0.0, MACHINE, "/x", plans)
