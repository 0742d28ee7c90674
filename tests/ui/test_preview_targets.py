"""The targets of a preview: they stay open until it is left, and what is written about them."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.ui.recorded import Host, settle
from tests.ui.test_screens import SMALL
from tui_fs.job.planning import Forecast, expected_of
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PathStr
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.strategy import Filters, Options, Pace, StrategyName
from tui_fs.model.survey import Survey, Totals
from tui_fs.screens.base import Settings
from tui_fs.screens.preview import PreviewScreen, about_estimate, about_targets, confirmation


def open_paths() -> list[str]:
    """Return what the descriptors of this process lead to."""
    paths = []
    for name in os.listdir("/proc/self/fd"):
        try:
            paths.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the descriptor that has listed the directory
            continue
    return paths


async def test_targets_are_open_while_the_preview_is_shown(tmp_path: Path) -> None:
    targets = [tmp_path / name for name in ("a", "b")]
    for target in targets:
        target.mkdir()
    preview = PreviewScreen(tuple(map(str, targets)), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        assert set(map(str, targets)) <= set(open_paths())
        await pilot.press("escape")
        await settle(pilot)
        assert not set(map(str, targets)) & set(open_paths())


MIB = 1 << 20
SURVEY = Survey(
    PathStr("/m/t"),
    Totals(files=2, directories=1, allocated_bytes=3 * MIB),
    freed_bytes_max=3 * MIB,
    is_on_overlay=True,
    finished=True,
)


def test_files_of_a_lower_layer_are_not_promised_to_free_space() -> None:
    prediction = Forecast((), None, (), expected_of(SURVEY, Options(), "overlay"))
    shown = about_targets(SURVEY, prediction, Filters()).plain
    assert "frees 0 B to 3.0 MiB (files in a lower layer free no space)" in shown


def test_a_quick_estimate_does_not_promise_them_either() -> None:
    sure = Interval(3, 3, 3)
    size = Interval(2 * MIB, 3 * MIB, 4 * MIB)
    estimate = QuickEstimate(sure, sure, size, 1.0, True, 2, "A sample.", SURVEY)
    shown = about_estimate(SURVEY, estimate).plain
    assert "frees 0 B to 4.0 MiB (files in a lower layer free no space)" in shown


def test_an_estimate_that_is_exact_has_no_range() -> None:
    size = Interval(2 * MIB, 3 * MIB, 4 * MIB)
    own = replace(SURVEY, is_on_overlay=False)

    def lines(entries: Interval, directories: Interval) -> list[str]:
        estimate = QuickEstimate(entries, directories, size, 1.0, True, 2, "A sample.", own)
        return about_estimate(own, estimate).plain.split("\n")

    assert lines(Interval(10_484, 10_484, 10_484), Interval(84, 84, 84))[:2] == [
        "10,484 entries · all names read, sizes estimated",
        "in 84 directories · frees about 3.0 MiB · 2.0 MiB to 4.0 MiB",
    ]
    assert lines(Interval(9_000, 10_484, 12_000), Interval(80, 84, 90))[:2] == [
        "about 10,500 entries · estimate, 90 % range 9,000 to 12,000",
        "in about 84 directories · frees about 3.0 MiB · 2.0 MiB to 4.0 MiB",
    ]


def test_the_confirmation_tears_no_name_of_a_path() -> None:
    above = "/srv/customers/example.org/applications/shop/production/releases"
    assert _question(f"{above}/sessions")[0] == f"{above}/\n  sessions"
    assert _question(f"{above}/s")[0] == f"{above}/s"
    name = "x" * 100
    assert _question(f"/srv/{name}")[0] == f"/srv/\n  {name}"


def _question(
    *paths: str,
    lines_for_paths: int = 5,
    options: Options = Options(),  # noqa: B008
    survey: Survey = SURVEY,
) -> list[str]:
    rm = StrategyName("rm")
    predicted = Estimate(
        rm, 1, 2, 3, {}, None, 1, 1 << 20, True, True, True, (), (), "guesses", "guesses", "take it"
    )
    lines = confirmation(paths, survey, predicted, options, "a reason", lines_for_paths)
    return [str(line) for line in lines]


def test_the_confirmation_of_a_deep_directory_begins_with_its_name() -> None:
    above = "/srv" + "/deep" * 60
    lines = _question(f"{above}/trail ")
    assert lines[0] == "trail\\x20"
    assert lines[1].startswith("2 files")
    assert lines[-1].replace("\n  ", "") == f"The directory is in {above}"
    assert "deep/\n  deep/" in lines[-1]
    # And of a short path everything is in the first line
    assert _question("/srv/trail ")[0] == "/srv/trail\\x20"


@pytest.mark.parametrize(
    ("lines_for_paths", "number", "named"), [(5, 5, 5), (5, 6, 4), (5, 300, 4), (20, 20, 20)]
)
def test_the_confirmation_names_the_targets_that_have_room_and_counts_the_others(
    lines_for_paths: int, number: int, named: int
) -> None:
    paths = [f"/srv/{n:03}" for n in range(number)]
    lines = _question(*paths, lines_for_paths=lines_for_paths)
    rest = [] if named == number else [f"  … and {number - named} more"]
    names = [f"  {n:03}" for n in range(named)]
    assert lines[: named + len(rest) + 1] == [
        f"delete {number} directories in /srv",
        *names,
        *rest,
    ]


def test_long_names_of_targets_leave_room_for_fewer() -> None:
    paths = [f"/srv/{n}{'x' * 150}" for n in range(4)]
    lines = _question(*paths, lines_for_paths=7)
    assert lines[3] == "  … and 2 more"


def test_the_confirmation_names_the_limit_of_the_rate() -> None:
    assert "with rm in 1.0 s to 3.0 s" in _question("/srv/a")
    limited = _question("/srv/a", options=Options(pace=Pace(rate_per_s=1)))
    assert "with rm in 1.0 s to 3.0 s, limit 1 entry per second" in limited


def test_the_confirmation_names_no_time_before_everything_is_counted() -> None:
    lines = _question("/srv/a", survey=Survey(PathStr("/srv/a"), Totals(219, 1)))
    assert "at least 219 files, 1 directory and 0 B" in lines
    assert "with rm" in lines
