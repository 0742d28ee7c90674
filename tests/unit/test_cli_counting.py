"""The line on the terminal while a tree is counted."""

from tui_fs.cli.counting import progress


def test_the_rate_is_shown_once_a_second_has_passed() -> None:
    assert progress(1, 1, 0.9) == "counting  1 entry in 1 directory"
    assert (
        progress(1_204_113, 4_112, 3.0)
        == "counting  1,204,113 entries in 4,112 directories  401,371 /s  elapsed 0:03"
    )
