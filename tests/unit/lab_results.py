"""Runs of the lab, made by hand."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Experiment,
    FlameView,
    Judged,
    Judgement,
    Published,
    PublishedCalls,
    Scale,
    Setting,
    Step,
    TableView,
    View,
    judged,
)
from tui_fs.lab.results import (
    Ending,
    FileState,
    LabEvent,
    Machine,
    Measure,
    Noted,
    Results,
    Run,
    RunBegan,
    RunEnded,
    StepCounted,
    StepFailed,
    StepLeft,
    StepPlan,
    StepRan,
    fold,
)
from tui_fs.model.calls import CallCount, TraceSource

HOSTILE = "</script><b>\"'&\x1b[31m\x00\u202e]]>--></style></svg>"
MACHINE = Machine("6.12.1", "a processor", 2, 4 << 30, "Some Linux 13", {"rm": "rm (GNU) 9.7"})
DONE = RunEnded(Ending.DONE, 12.5)


def plan(key: str, title: str = "", entries: int = 10_001, **others: object) -> StepPlan:
    """Return a step as it will be done."""
    values: dict[str, object] = {
        "commands": (f"{key} -rf tree",),
        "place": "ext4",
        "tree": "10,000 empty files in one directory",
        **others,
    }
    return StepPlan(key=key, title=title or key, entries=entries, **values)  # type: ignore[arg-type]


def all_tools(experiment: Experiment) -> Setting:
    """Return a machine with all tools of an experiment."""
    tools = {name: f"/usr/bin/{name}" for name in experiment.tools}
    return Setting(tools)


def steps_of(experiment: Experiment, scale: Scale) -> dict[str, tuple[Step, int]]:
    """Return the steps of an experiment by key, each with the entries of its tree."""
    return {
        step.key: (step, trial.tree.entries if trial.tree else 0)
        for trial in experiment.trials(scale, all_tools(experiment))
        for step in trial.steps
    }


def plans_of(experiment: Experiment, scale: Scale) -> list[StepPlan]:
    """Return the steps of an experiment as they will be done."""
    return [
        plan(key, step.title, entries, series=step.series, x=step.x, share=step.share)
        for key, (step, entries) in steps_of(experiment, scale).items()
    ]


def run_with(
    experiment: Experiment,
    scale: Scale = Scale.SMALL,
    *,
    seconds: Mapping[str, Sequence[float | Run]] | None = None,
    outputs: Mapping[str, str] | None = None,
    calls: Mapping[str, Mapping[str, int | CallCount]] | None = None,
    left: Mapping[str, FileState] | None = None,
    failed: Mapping[str, str] | None = None,
    processors: int = 2,
) -> Results:
    """Return a run of an experiment with these figures and no others."""
    outputs = outputs or {}
    runs = {
        key: [run if isinstance(run, Run) else run_of(run, outputs.get(key, "")) for run in values]
        for key, values in {**dict.fromkeys(outputs, (0.001,)), **(seconds or {})}.items()
    }
    counts = {
        key: {
            name: count if isinstance(count, CallCount) else CallCount(count)
            for name, count in counted.items()
        }
        for key, counted in (calls or {}).items()
    }
    return results_of(
        plans_of(experiment, scale),
        runs,
        calls=counts,
        left=left,
        failed=failed,
        scale=scale.value,
        machine=replace(MACHINE, processors=processors),
    )


def judgement_of(experiment: Experiment, beginning: str, results: Results) -> Judged:
    """Return the judgement on the one claim of an experiment whose text begins so."""
    (claim,) = (claim for claim in experiment.claims if claim.text.startswith(beginning))
    return claim.judged(results)


def run_of(seconds: float, output: str = "") -> Run:
    """Return a run that took so long, most of it in the kernel."""
    return Run(seconds, seconds / 10, seconds / 2, 3 << 20, 300, 0, output)


def results_of(
    plans: Sequence[StepPlan],
    runs: Mapping[str, Sequence[float | Run]] | None = None,
    *,
    calls: Mapping[str, Mapping[str, CallCount]] | None = None,
    left: Mapping[str, FileState] | None = None,
    failed: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    experiment: str = "by-hand",
    scale: str = "published",
    machine: Machine = MACHINE,
    ended: RunEnded | None = DONE,
) -> Results:
    """Return the results of an experiment with these steps, with their seconds."""
    began = RunBegan(experiment, scale, 1_700_000_000.0, machine, "/scratch/lab", tuple(plans))
    events: list[LabEvent] = [began]
    for key, values in (runs or {}).items():
        events += [StepRan(key, run if isinstance(run, Run) else run_of(run)) for run in values]
    for key, counted in (calls or {}).items():
        events.append(StepCounted(key, TraceSource.STRACE, dict(counted)))
    events += [StepLeft(key, state) for key, state in (left or {}).items()]
    events += [StepFailed(key, reason) for key, reason in (failed or {}).items()]
    events += [Noted(note) for note in notes]
    if ended is not None:
        events.append(ended)
    return fold(events)


def showing(*views: View, **others: object) -> Experiment:
    """Return an experiment with these views."""
    values: dict[str, object] = {
        "name": "by-hand",
        "title": "Made by hand",
        "question": "What does it show?",
        "trials": lambda _scale, _setting: (),
        "tools": ("rm",),
        **others,
    }
    return Experiment(views=lambda _: views, **values)  # type: ignore[arg-type]


_SIZES = (10, 1_000, 100_000)
_KEYS = tuple(f"{tool}-{size}" for tool in ("rm", "rsync") for size in _SIZES)
FLAME_FILE = "stacks.txt"
STACKS = "main (a.py:1);rmtree (b.py:2);unlink (c.py:3) 60\nmain (a.py:1);rmtree (b.py:9) 40\n"


def full_experiment() -> Experiment:
    """Return an experiment with a view of every kind and a claim of every verdict."""

    def slower(results: Results) -> Judgement:
        rm, rsync = results.median("rm-100000"), results.median("rsync-100000")
        return judged(rsync < rm, f"rm {rm:.2f} s, rsync {rsync:.2f} s")

    def asked_too_much(results: Results) -> Judgement:
        return judged(results.median("missing") > 0, "")

    return showing(
        TableView(
            "Times",
            (*_KEYS, "missing"),
            (Measure.SECONDS, Measure.PEAK_MEMORY_BYTES),
            has_bars=True,
        ),
        CallsView("System calls", ("rm-1000", "rsync-1000")),
        FlameView("Where the time goes", FLAME_FILE),
        source="somebody's page, 2018",
        published=(
            Published("rm-100000", Measure.SECONDS, 2.3, "rm of 2018"),
            Published("rsync-100000", Measure.SECONDS, 2.6, "rsync of 2018"),
        ),
        published_calls=(PublishedCalls("rm-1000", "unlinkat 1000 0 lstat 1 1"),),
        claims=(
            Claim("rm makes one call a file.", "1,000 unlinkat", lambda _: judged(True, "1,000")),
            Claim("rsync is faster than rm.", "a little", slower),
            Claim("It was always so.", "supposed", asked_too_much),
        ),
    )


def full_results(machine: Machine = MACHINE, notes: Sequence[str] = ("A note.",)) -> Results:
    """Return a run of it."""
    plans = [
        plan(f"{tool}-{size}", f"{tool}, {size:,} files", size + 1, series=tool, x=float(size))
        for tool in ("rm", "rsync")
        for size in _SIZES
    ]
    plans.append(plan("missing", "toybox rm", why_not="toybox is not installed"))
    seconds = {
        f"{tool}-{size}": [each * size * step for step in (1.0, 0.9, 1.3)]
        for tool, each in (("rm", 1e-5), ("rsync", 1.7e-5))
        for size in _SIZES
    }
    calls = {
        "rm-1000": {
            "unlinkat": CallCount(1_000, 0, 0.03),
            "getdents64": CallCount(4, 0, 0.01),
            "access": CallCount(1, 1, 0.0),
        },
        "rsync-1000": {"unlink": CallCount(1_000, 0, 0.04), "lstat": CallCount(1_004, 2, 0.01)},
    }
    return results_of(plans, seconds, calls=calls, notes=notes, machine=machine)
