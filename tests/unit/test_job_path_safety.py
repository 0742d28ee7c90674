"""Who could redirect a strategy, and the arguments that name the target to its tools."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acl import NAMED_USER, grant
from tests.idmapped import mount_idmapped
from tests.needs import lacks, needs_root
from tests.strategies import BY_PATH, RACE_SAFE
from tui_fs.job.path_safety import (
    MOST_ARGUMENT_BYTES,
    MOST_GROUPS,
    PreparedStep,
    check_path_race,
    directories_named_from,
    is_unreplaceable,
    open_pinned,
    path_race,
    prepare_steps,
    step_limit_problem,
)
from tui_fs.linux.mounts import MountTable, mount_of, read_mounts
from tui_fs.linux.pins import pin_of, take_pin
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, Step, StrategyName
from tui_fs.model.target import Pin, Target
from tui_fs.strategies.base import Invocation
from tui_fs.strategies.registry import STRATEGIES

NOBODY = 65534
TOOL = "/bin/tool"


@pytest.fixture
def firm(tmp_path: Path) -> Path:
    """Return a directory that no other user can replace."""
    needs_root("giving directories away")
    return tmp_path


def tree(above: Path, mode: int = 0o755, uid: int | None = None) -> Path:
    """Make above/t of a mode and an owner; None is this user."""
    target = above / "t"
    target.mkdir(parents=True)
    target.chmod(mode)
    if uid is not None:
        os.chown(target, uid, uid)
    return target


def prepare(
    strategy: StrategyName,
    paths: Sequence[str | Path],
    options: Options | None = None,
    *,
    pins: Sequence[Pin] = (),
    with_output: bool = False,
) -> tuple[PreparedStep, ...]:
    """Prepare the steps of one strategy, whose tools are all in TOOL."""
    built = STRATEGIES[strategy]
    tools = dict.fromkeys(built.tools, TOOL)
    return prepare_steps(
        built,
        [str(path) for path in paths],
        options or Options(),
        tools,
        "/e",
        pins=pins,
        with_output=with_output,
    )


def steps_of(
    strategy: StrategyName, paths: Sequence[str], options: Options, *, with_output: bool = False
) -> tuple[Step, ...]:
    """Return the steps of one strategy as it would build them."""
    built = STRATEGIES[strategy]
    tools = dict.fromkeys(built.tools, TOOL)
    return built.steps(Invocation(tuple(paths), options, tools, "/e", with_output))


def race_reason(
    strategy: StrategyName,
    target: Path,
    shared: int = 0,
    options: Options | None = None,
    mounts: MountTable | None = None,
) -> str | None:
    """Ask for one strategy."""
    return path_race(
        STRATEGIES[strategy],
        options or Options(),
        [str(target)],
        shared,
        mounts,
        is_confined=False,
    )


@pytest.mark.parametrize("strategy", BY_PATH)
def test_what_works_by_path_needs_a_tree_of_ones_own(firm: Path, strategy: StrategyName) -> None:
    assert race_reason(strategy, tree(firm)) is None
    # But where others may write in it, each number of directories is said as it is
    assert "write in a directory of" in str(race_reason(strategy, firm / "t", shared=1))
    assert "write in 1,234 directories of" in str(race_reason(strategy, firm / "t", shared=1234))


@pytest.mark.parametrize("strategy", RACE_SAFE)
def test_what_holds_directories_open_needs_nothing(firm: Path, strategy: StrategyName) -> None:
    (firm / "theirs").mkdir()
    os.chown(firm / "theirs", NOBODY, NOBODY)
    assert race_reason(strategy, tree(firm / "theirs", 0o777, NOBODY), shared=9) is None


@pytest.mark.parametrize(
    ("mode", "uid"), [(0o777, 0), (0o1777, 0), (0o755, NOBODY), (0o000, NOBODY)]
)
def test_a_target_that_others_may_write_is_a_race(firm: Path, mode: int, uid: int) -> None:
    target = tree(firm, mode, uid)
    assert f"replace {target}" in str(race_reason(StrategyName("xargs"), target))


@pytest.mark.parametrize(
    ("mode", "uid", "is_race"),
    [
        (0o755, 0, False),
        (0o777, 0, True),
        (0o1777, 0, False),
        (0o1777, NOBODY, True),
        (0o700, NOBODY, True),
    ],
)
def test_the_way_to_the_target_counts(firm: Path, mode: int, uid: int, is_race: bool) -> None:
    above = firm / "above"
    target = tree(above / "below")
    above.chmod(mode)
    os.chown(above, uid, uid)
    message = race_reason(StrategyName("rsync"), target)
    assert (message is not None) is is_race
    assert message is None or f"replace {above / 'below'}" in message
    # And just then the command lines do not name its path
    assert is_unreplaceable(str(target), read_mounts()) is not is_race
    assert directories_named_from([str(target)]) == ((str(target),) if is_race else ())


@pytest.mark.parametrize("with_output", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tools_get_the_path_where_it_is_firm(
    firm: Path, strategy: StrategyName, with_output: bool
) -> None:
    target = str(tree(firm))
    prepared_steps = prepare(strategy, [target], with_output=with_output)
    assert tuple(prepared.step for prepared in prepared_steps) == steps_of(
        strategy, [target], Options(), with_output=with_output
    )
    assert {(prepared.targets, prepared.is_inside) for prepared in prepared_steps} == {
        ((0,), False)
    }


@pytest.mark.parametrize("with_output", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "options",
    [Options(), Options(keep_root=True), Options(filters=Filters(name_glob="*"))],
    ids=["whole", "keep-root", "filters"],
)
def test_tools_get_no_path_where_others_can_exchange_it(
    firm: Path, strategy: StrategyName, options: Options, with_output: bool
) -> None:
    (firm / "all").mkdir()
    (firm / "all").chmod(0o777)
    target = firm / "all" / "-rf"
    target.mkdir()
    assert not is_unreplaceable(str(target), read_mounts())
    prepared_steps = prepare(strategy, [target], options, with_output=with_output)
    words = [word for step in prepared_steps for argv in step.step for word in argv]
    assert not any(str(firm) in word for word in words)
    assert {step.targets for step in prepared_steps} == {(0,)}
    steps_inside = tuple(prepared.step for prepared in prepared_steps if prepared.is_inside)
    if options == Options():
        assert [step.is_inside for step in prepared_steps] == [True] * (len(prepared_steps) - 1) + [
            False
        ]
        assert prepared_steps[-1].step == ((TOOL, "--", "./-rf"),)
    else:
        assert len(steps_inside) == len(prepared_steps)
    # And what runs in it keeps the directory itself
    assert steps_inside == steps_of(
        strategy, ["."], replace(options, keep_root=True), with_output=with_output
    )


def several(above: Path, number: int, name: str = "t") -> list[str]:
    """Make sibling directories."""
    paths = [above / f"{name}{at}" for at in range(number)]
    for path in paths:
        path.mkdir()
    return [str(path) for path in paths]


@pytest.mark.parametrize("keep_root", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_firm_targets_come_first_and_others_run_inside(
    firm: Path, strategy: StrategyName, keep_root: bool
) -> None:
    (firm / "all").mkdir()
    (firm / "all").chmod(0o777)
    one, two = several(firm, 2)
    (loose,) = several(firm / "all", 1, "-rf ")
    paths, options = [one, loose, two], Options(keep_root=keep_root)
    prepared_steps = prepare(strategy, paths, options)
    expected = [step for path in (one, two) for step in steps_of(strategy, [path], options)]
    outside = [step for step in prepared_steps if 1 not in step.targets]
    assert [step.step for step in outside] == expected
    assert not any(step.is_inside for step in outside)
    # And the other target has steps of its own; none names it by its path
    own = prepared_steps[len(outside) :]
    assert {step.targets for step in own} == {(1,)}
    words = [word for prepared in own for argv in prepared.step for word in argv]
    assert not any(str(firm) in word for word in words)
    assert own[-1].is_inside is keep_root
    assert all(step.is_inside for step in own[:-1])
    # And each target is in some step
    assert {number for prepared in prepared_steps for number in prepared.targets} == {0, 1, 2}


@pytest.mark.parametrize("number", [10 * MOST_GROUPS, 1000])
def test_many_firm_targets_are_dealt_out_to_command_lines_that_the_kernel_permits(
    firm: Path, number: int
) -> None:
    above = firm.joinpath(*["x" * 240] * (14 if number == 1000 else 0))
    above.mkdir(parents=True, exist_ok=True)
    paths = several(above, number)
    prepared_steps = prepare(StrategyName("rm"), paths)
    # Each in just one, in its order
    assert [at for prepared in prepared_steps for at in prepared.targets] == list(range(number))
    sizes = [len(prepared.targets) for prepared in prepared_steps]
    lengths = [sum(len(word) + 1 for word in prepared.step[0]) for prepared in prepared_steps]
    if number == 1000:
        assert len(sizes) > MOST_GROUPS
        assert max(lengths) < MOST_ARGUMENT_BYTES + 100
    else:
        assert sizes == [10] * MOST_GROUPS


def test_more_steps_than_a_job_has_are_said(firm: Path) -> None:
    paths = several(firm, 51)
    built = STRATEGIES[StrategyName("rsync")]
    few, many = prepare(built.name, paths[:50]), prepare(built.name, paths)
    assert (len(few), len(many)) == (100, 102)
    assert step_limit_problem(built, few) is None
    assert "102 steps" in str(step_limit_problem(built, many))


def test_accepted_races_are_none(firm: Path) -> None:
    target = tree(firm, 0o777, NOBODY)
    assert race_reason(StrategyName("xargs"), target, 1, Options(accept_races=True)) is None
    check_path_race(
        STRATEGIES[StrategyName("xargs")],
        Options(accept_races=True),
        [str(target)],
        1,
        is_confined=False,
    )
    with pytest.raises(Refused) as refusal:
        check_path_race(
            STRATEGIES[StrategyName("xargs")], Options(), [str(target)], 1, is_confined=False
        )
    assert refusal.value.rule == "races"
    assert "--accept-races" in refusal.value.advice


def test_a_missing_path_is_not_trusted(firm: Path) -> None:
    assert race_reason(StrategyName("xargs"), firm / "gone") is not None
    assert race_reason(StrategyName("xargs"), firm / "gone" / "t") is not None
    assert not is_unreplaceable(str(firm / "gone" / "t"), read_mounts())


def target_at(path: Path) -> Target:
    """Pin a directory."""
    return Target(PathStr(str(path)), take_pin(str(path)))


def test_the_pinned_target_is_held(tmp_path: Path) -> None:
    target = target_at(tree(tmp_path))
    parent, target_fd = open_pinned(target)
    assert pin_of(target_fd) == target.pin
    assert pin_of(parent) == take_pin(str(tmp_path))
    # And the descriptors still refer to them after a rename
    (tmp_path / "t").rename(tmp_path / "moved")
    tree(tmp_path)
    assert pin_of(target_fd) == target.pin
    for descriptor in (parent, target_fd):
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)


def test_another_directory_in_its_place_is_refused(tmp_path: Path) -> None:
    target = target_at(tree(tmp_path))
    (tmp_path / "t").rename(tmp_path / "moved")
    tree(tmp_path)
    with pytest.raises(Refused) as refusal:
        open_pinned(target)
    assert refusal.value.rule == "changed"


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = target_at(tree(tmp_path))
    (tmp_path / "t").rename(tmp_path / "moved")
    (tmp_path / "t").symlink_to("moved")
    with pytest.raises(OSError):
        open_pinned(target)


def test_the_engine_is_given_the_pin_of_each_of_its_targets(firm: Path) -> None:
    # Two firm targets and one that another user could replace
    paths = [str(tree(firm / "a")), str(tree(firm / "b", uid=NOBODY)), str(tree(firm / "c"))]
    os.chown(firm / "b", NOBODY, NOBODY)
    pins = [Pin(1, number, 0) for number in (10, 20, 30)]
    prepared_steps = prepare(StrategyName("parallel"), paths, pins=pins)
    pinned = {
        prepared.targets: [step for step in prepared.step[0] if ":" in step]
        for prepared in prepared_steps
        if "delete" in prepared.step[0]
    }
    assert pinned == {(0,): ["1:10:0"], (2,): ["1:30:0"], (1,): ["1:20:0"]}
    assert prepared_steps[-1].step == ((TOOL, "--", "./t"),)
    # But no other strategy gets any
    assert prepare(StrategyName("find"), paths, pins=pins) == prepare(StrategyName("find"), paths)


@pytest.mark.parametrize("strategy", BY_PATH)
def test_what_works_by_path_is_refused_when_an_acl_grants_write(
    firm: Path, strategy: StrategyName
) -> None:
    target = tree(firm / "above")
    assert race_reason(strategy, target) is None
    grant(firm / "above", NAMED_USER, NOBODY)
    assert f"replace {target}" in str(race_reason(strategy, target))
    assert not is_unreplaceable(str(target), read_mounts())
    # And the same with a list of the target itself
    (firm / "above").chmod(0o755)
    assert race_reason(strategy, target) is None
    grant(target, NAMED_USER, NOBODY)
    assert race_reason(strategy, target) is not None


@pytest.mark.parametrize(
    "kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "fuseblk", "ceph", "ocfs2", "virtiofs", "lustre"]
)
def test_what_works_by_path_is_refused_where_a_server_decides(firm: Path, kind: str) -> None:
    target = tree(firm / "served" / "disk")
    assert is_unreplaceable(str(target), read_mounts())
    local = read_mounts()
    holder = mount_of(str(firm), local)
    assert holder is not None
    served = replace(
        holder,
        mount_id=1_000_001,
        parent_id=holder.mount_id,
        mount_point=PathStr(str(firm / "served")),
        filesystem=kind,
    )
    disk = replace(
        served,
        mount_id=1_000_002,
        parent_id=served.mount_id,
        mount_point=PathStr(str(target.parent)),
        filesystem="ext4",
    )

    mounts = MountTable((*local, served, disk))
    message = str(race_reason(StrategyName("xargs"), target, mounts=mounts))
    assert f"{firm / 'served'} is a file system of type {kind}" in message
    assert "its server decides who can write" in message
    # But not where root's own FUSE program leaves the checks to the kernel
    if kind.startswith("fuse"):
        options = frozenset({"rw", "user_id=0", "default_permissions"})
        own = MountTable((*local, replace(served, options=options), disk))
        assert race_reason(StrategyName("xargs"), target, mounts=own) is None
    # And the tools of every strategy run in the target
    assert directories_named_from([str(target)], mounts) == (str(target),)
    assert race_reason(StrategyName("rm"), target, mounts=mounts) is None


def test_owners_on_an_idmapped_mount_are_not_believed(ext4: Path) -> None:
    source = tree(ext4 / "theirs", uid=NOBODY).parent
    os.chown(source, NOBODY, NOBODY)
    try:
        mount_idmapped(source, ext4 / "shown", NOBODY, 0)
    except OSError as error:
        lacks(f"this kernel cannot do idmapped mounts ({error})")
    target = ext4 / "shown" / "t"
    assert target.stat().st_uid == 0
    for strategy in BY_PATH:
        assert f"the mount at {ext4}/shown is idmapped" in str(race_reason(strategy, target))
    # And the tools of all others run in the target
    assert not is_unreplaceable(str(target), read_mounts())
    assert all(race_reason(strategy, target) is None for strategy in RACE_SAFE)
