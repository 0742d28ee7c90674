"""A strategy that a person has moved to stays chosen, whatever is counted or measured meanwhile."""

from tests.ui.recorded import Host, maildrop_survey
from tests.ui.test_screens import SMALL, a_quiet_machine, counted, preview, settle
from widgets.bar_table import BarTable

__all__ = ["a_quiet_machine"]


async def test_a_key_that_was_not_heard_of_yet_is_not_undone() -> None:
    screen = preview()
    app = Host(screen)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        await settle(pilot)
        rows = screen.query_one(BarTable)
        assert rows.cursor_row is not None
        assert rows.cursor_row.key == "rm"
        rows.action_move(1)
        screen._show()
        assert rows.cursor_row.key == "find"
        await settle(pilot)
        assert rows.cursor_row is not None and rows.cursor_row.key == "find"
