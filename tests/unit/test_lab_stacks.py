"""Stacks to a flame table."""

from hypothesis import given
from hypothesis import strategies as st

from tui_fs.lab.stacks import flames


def test_a_tree_is_told_depth_first_the_largest_first() -> None:
    # given
    lines = ["main;copy 30", "main;delete;unlink 50", "main;delete 10", "main 10"]

    # when
    samples, rows = flames(lines)

    # then
    assert samples == 100
    assert [(one.function, one.depth, one.own_percent, one.total_percent) for one in rows] == [
        ("main", 0, 10.0, 100.0),
        ("delete", 1, 10.0, 60.0),
        ("unlink", 2, 50.0, 50.0),
        ("copy", 1, 30.0, 30.0),
    ]


def test_recursion_and_a_single_line_are_one_row() -> None:
    # given
    lines = ["walk (a.py:3);walk (a.py:4);walk (a.py:4) 3", "walk (a.py:4) 1"]

    # when
    samples, rows = flames(lines)

    # then
    assert samples == 4
    assert [(one.function, one.own_percent) for one in rows] == [("walk (a.py)", 100.0)]


def test_several_lines_of_a_function_are_told_apart() -> None:
    # given
    lines = ["walk (a.py:3);walk (a.py:9) 300", "walk (a.py:4) 97", "walk (a.py:5) 3"]
    lines.append("walk (a.py:3);join (b.py:1) 400")

    # when
    _, rows = flames(lines)

    # then
    assert [(one.function, one.depth, one.own_percent, one.total_percent) for one in rows] == [
        ("walk (a.py)", 0, 0.375, 100.0),
        ("join (b.py)", 1, 50.0, 50.0),
        ("line 9", 1, 37.5, 37.5),
        ("line 4", 1, 12.125, 12.125),
    ]


def test_what_is_no_stack_is_passed_over() -> None:
    # given
    lines = ["", "nonsense", "a;b many", "a;b ٣", " 4", "a b;c d 2"]

    # when
    samples, rows = flames(lines)

    # then
    assert samples == 2
    assert [one.function for one in rows] == ["a b", "c d"]


def test_no_samples_are_no_rows() -> None:
    assert flames(["a;b 0", ""]) == (0, ())


def test_a_very_deep_stack_is_read() -> None:
    # given
    line = ";".join(f"f{number}" for number in range(20_000)) + " 7"

    # when
    samples, rows = flames([line], most=25)

    # then
    assert samples == 7
    assert [one.depth for one in rows] == list(range(25))


def test_control_characters_in_names_are_escaped() -> None:
    # when
    _, rows = flames(["\x1b[31mred 1"])

    # then
    assert rows[0].function == "\\e[31mred"


_STACKS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), st.integers(1, 50)),
    min_size=1,
    max_size=40,
)


@given(stacks=_STACKS, most=st.integers(1, 12))
def test_every_row_stands_below_its_caller(stacks: list[tuple[list[str], int]], most: int) -> None:
    # when
    samples, rows = flames([f"{';'.join(stack)} {times}" for stack, times in stacks], most)

    # then
    assert samples == sum(times for _, times in stacks)
    assert 1 <= len(rows) <= most
    above: list[float] = []
    for one in rows:
        assert one.depth <= len(above), "its caller is missing"
        assert 0 <= one.own_percent <= one.total_percent + 1e-9
        if one.depth:
            assert one.total_percent <= above[one.depth - 1] + 1e-9
        above = [*above[: one.depth], one.total_percent]
