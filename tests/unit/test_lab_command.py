"""``tui-fs lab``: what its commands print, and how they end."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lab_results import full_experiment, full_results
from tui_fs import cli
from tui_fs.cli import lab
from tui_fs.cli.parser import parse
from tui_fs.lab.experiment import Experiment, Scale
from tui_fs.lab.results import (
    Ending,
    LabEvent,
    Measured,
    Progressed,
    Results,
    RunEnded,
    StepRan,
)
from tui_fs.lab.runs import StoredRun
from tui_fs.model.errors import Missing, Refused, TuiFsError


def test_the_scales_of_the_command_line_are_those_of_the_lab() -> None:
    for scale in Scale:
        assert parse(["lab", "run", "x", "--scale", scale.value]).scale == scale


class _MadeUpRun:
    """Stand-in for a measuring process: sends the given events, or ends when cancelled."""

    events_to_tell: tuple[LabEvent, ...] = ()
    refuses: TuiFsError | None = None
    dies: TuiFsError | None = None
    signal_after: dict[int, signal.Signals] = {}

    def __init__(
        self,
        name: str,
        scale: Scale,
        directory: str | None,
        target: str = "",
        max_rounds: int | None = None,
    ) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.asked = (name, scale, directory, target, max_rounds)
        self.folder = "/runs/by-hand-1"
        self.is_cancelled = False

    def __enter__(self) -> "_MadeUpRun":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def events(self) -> Iterator[LabEvent]:
        for number, event in enumerate(self.events_to_tell):
            yield event
            if number in self.signal_after:
                os.kill(os.getpid(), self.signal_after[number])
            if self.is_cancelled:
                yield RunEnded(Ending.CANCELLED, 1.0)
                return
        if self.dies is not None:
            raise self.dies

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_MadeUpRun]]:
    """The command line with one experiment and no process."""

    class Fresh(_MadeUpRun):
        pass

    results = full_results()
    Fresh.events_to_tell = (
        results.began,
        Progressed("making a tree\x1b", 0.1),
        Progressed("making a tree\x1b", 0.2),
        *(
            StepRan(measured.plan.key, run)
            for measured in results.measured.values()
            for run in measured.runs
        ),
        RunEnded(Ending.DONE, 12.5),
    )
    kept = [signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(lab, "LabRun", Fresh)
    monkeypatch.setattr(lab, "experiments", lambda: (full_experiment(),))
    monkeypatch.setattr(lab, "experiment", _named)
    yield Fresh
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), kept, strict=True):
        signal.signal(number, handler)


def _named(name: str) -> Experiment:
    assert name == "by-hand"
    return full_experiment()


def _failed() -> RunEnded:
    return RunEnded(Ending.FAILED, 1.0, "the disk is full")


def test_an_unknown_experiment_is_a_wrong_word(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["lab", "run", "nonsense"])
    assert code == 2
    assert "no experiment 'nonsense'" in capsys.readouterr().err


@pytest.mark.usefixtures("made_up")
def test_a_run_prints_its_result_and_says_on_the_side_how_it_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = cli.main(["lab", "run", "by-hand"])
    printed = capsys.readouterr()
    assert code == 0
    assert "✗ does not hold here: rsync is faster than rm." in printed.out
    assert "█ to minimum" in printed.out
    assert printed.err == "making a tree\\e\n"


@pytest.mark.usefixtures("made_up")
def test_json_has_the_raw_figures(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["lab", "run", "by-hand", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (report["schema"], report["experiment"], report["run"]) == (1, "by-hand", "by-hand-1")
    assert (report["scale"], report["ending"], report["elapsed_s"]) == ("published", "done", 12.5)
    assert report["machine"]["tools"] == {"rm": "rm (GNU) 9.7"}
    assert [claim["verdict"] for claim in report["claims"]] == [
        "holds here", "does not hold here", "cannot be tested here",
    ]  # fmt: skip
    steps = {step["key"]: step for step in report["steps"]}
    assert steps["rm-10"]["commands"] == ["rm-10 -rf tree"]
    assert [step["seconds"] for step in steps["rm-10"]["runs"]] == pytest.approx(
        [1.0e-4, 0.9e-4, 1.3e-4]
    )
    assert steps["missing"]["why_not"] == "toybox is not installed"
    assert steps["missing"]["runs"] == [] and steps["missing"]["source"] is None
    for name in ("title", "place", "tree", "entries", "calls", "left"):
        assert name in steps["rm-10"]


def test_a_report_is_a_page_and_replaces_nothing_unasked(
    made_up: type[_MadeUpRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.html"
    first = cli.main(["lab", "run", "by-hand", "--report", str(file)])
    page = file.read_text()
    file.write_text("mine")
    made_up.refuses = AssertionError  # type: ignore[assignment]  # it must not come so far
    second = cli.main(["lab", "run", "by-hand", "--report", str(file)])
    made_up.refuses = None
    kept = file.read_text()
    third = cli.main(["lab", "run", "by-hand", "--report", str(file), "--force"])
    assert (first, second, third) == (0, 2, 0)
    assert page.startswith("<!DOCTYPE html>") and "by-hand-1" in page
    assert kept == "mine"
    assert file.read_text() == page
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "/nonexistent/r.html"],
        ["--report", "/"],
        ["--force"],
        ["--target", "/tmp"],
        ["--dir", "/nonexistent"],
        ["--scale", "huge"],
    ],
)
def test_wrong_words_are_reported_before_anything_runs(
    made_up: type[_MadeUpRun], arguments: list[str]
) -> None:
    made_up.refuses = AssertionError  # type: ignore[assignment]
    assert cli.main(["lab", "run", "by-hand", *arguments]) == 2


@pytest.mark.parametrize(
    ("why", "code"),
    [
        (Refused("There is no room.", rule="no-room"), 3),
        (Missing("It needs root."), 4),
    ],
)
def test_each_obstacle_has_its_exit_code(
    made_up: type[_MadeUpRun], why: TuiFsError, code: int
) -> None:
    made_up.refuses = why
    assert cli.main(["lab", "run", "by-hand"]) == code


def test_a_run_that_failed_or_died_ends_with_one(
    made_up: type[_MadeUpRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.html"
    made_up.events_to_tell = (*made_up.events_to_tell[:-1], _failed())
    failed = cli.main(["lab", "run", "by-hand", "--report", str(file)])
    made_up.events_to_tell = made_up.events_to_tell[:2]
    made_up.dies = TuiFsError("The experiment's process ended unexpectedly.")
    died = cli.main(["lab", "run", "by-hand"])
    assert (failed, died) == (1, 1)
    printed = capsys.readouterr().err
    assert "the disk is full" in printed and "no page was written" in printed
    assert "ended unexpectedly" in printed
    assert not file.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_and_waits_for_the_end(
    made_up: type[_MadeUpRun],
    number: signal.Signals,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made_up.signal_after = {3: number}
    ended = cli.main(["lab", "run", "by-hand", "--json"])
    printed = capsys.readouterr()
    assert ended == code
    assert json.loads(printed.out)["ending"] == "cancelled"
    assert "the run was cancelled, and its files were removed" in printed.err


def _keep(monkeypatch: pytest.MonkeyPatch, kept: dict[str, Results]) -> None:
    def load(folder: str) -> Results:
        return kept[os.path.basename(folder)]

    stored = [
        StoredRun(name, f"/runs/{name}", "by-hand", Scale.SMALL, 1.0, Ending.DONE) for name in kept
    ]
    monkeypatch.setattr(lab, "find_run", lambda name: f"/runs/{name}")
    monkeypatch.setattr(lab, "load", load)
    monkeypatch.setattr(lab, "stored_runs", lambda: stored)


@pytest.mark.usefixtures("made_up")
def test_runs_that_are_kept_can_be_listed_shown_and_compared(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = full_results()
    slower = {key: Measured(each.plan, each.runs[:1], {}) for key, each in results.measured.items()}
    _keep(monkeypatch, {"one": results, "two": Results(results.began, slower, ended=results.ended)})
    file = tmp_path / "r.html"
    codes = [cli.main(["lab", "runs"])]
    listed = capsys.readouterr().out
    codes.append(cli.main(["lab", "runs", "--json"]))
    listed_as_json = json.loads(capsys.readouterr().out)
    codes.append(cli.main(["lab", "show", "one", "--report", str(file)]))
    shown = capsys.readouterr().out
    codes.append(cli.main(["lab", "compare", "one", "two"]))
    compared = capsys.readouterr().out
    codes.append(cli.main(["lab", "compare", "one", "two", "--json"]))
    compared_as_json = json.loads(capsys.readouterr().out)
    assert codes == [0] * 5
    assert listed.split("\n")[1].split()[:3] == ["one", "by-hand", "small"]
    assert [each["run"] for each in listed_as_json] == ["one", "two"]
    assert "Run one: done" in shown and file.read_text().startswith("<!DOCTYPE html>")
    assert "Medians of time" in compared and "1.00" in compared
    assert compared_as_json["runs"] == ["one", "two"]
    assert compared_as_json["steps"][0]["medians"]["seconds"]["ratio"] == pytest.approx(1.0)
