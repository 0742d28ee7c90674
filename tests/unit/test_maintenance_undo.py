"""Undoing what was left, and what others did to it meanwhile."""

import errno
import os
from pathlib import Path

import pytest

from tui_fs.job import aside_store, maintenance
from tui_fs.job.aside_store import AsideRecord, AsideState, find, records
from tui_fs.job.maintenance import look, put_aside, recreate_directory, undo
from tui_fs.job.store import read_json
from tui_fs.model.errors import BadInput, Refused


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Return a directory with a file."""
    spool = tmp_path / "work" / "spool"
    spool.mkdir(parents=True)
    (spool / "precious").touch()
    return spool


def fail(*_: object, **__: object) -> None:
    """Fail as a broken disk does."""
    raise OSError(errno.EIO, "")


def with_twin(spool: Path) -> AsideRecord:
    """Set it aside, with a twin in its place."""
    return put_aside(look(str(spool), to_recreate=False), with_twin=True).record


def test_a_leftover_goes_into_the_known_directory_only(spool: Path) -> None:
    record = with_twin(spool)
    aside = Path(record.aside)
    saved, twin = spool.parent / "saved", spool.parent / "twin"
    spool.rename(twin)
    aside.rename(saved)
    twin.rename(aside)
    (aside / "late").touch()
    spool.mkdir()
    with pytest.raises(Refused, match="are not the ones that were exchanged") as refused:
        undo(record.id)
    assert refused.value.rule == "changed"
    assert os.listdir(spool) == []
    assert os.listdir(aside) == ["late"]
    spool.rmdir()
    saved.rename(spool)
    undo(record.id)
    assert set(os.listdir(spool)) == {"late", "precious"}
    assert os.listdir(spool.parent) == ["spool"]


def test_undoing_that_fails_at_its_end_says_what_is_where(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = with_twin(spool)
    inode = Path(record.aside).stat().st_ino

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", fail)
        with pytest.raises(Refused) as refused:
            undo(record.id)

    assert spool.stat().st_ino == inode
    assert f"{spool} is back. " in refused.value.sentence
    assert record.aside in refused.value.advice
    assert record.id in refused.value.advice
    undo(record.id)
    assert os.listdir(spool.parent) == ["spool"]


def test_another_directory_under_its_name_is_not_put_back(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = put_aside(look(str(spool), to_recreate=False), with_twin=False).record
    Path(record.aside).rename(spool.parent / "elsewhere")
    Path(record.aside).mkdir()
    monkeypatch.setattr(maintenance, "state_in", lambda *_: AsideState.ASIDE)

    with pytest.raises(Refused, match="not the directory that was set aside"):
        undo(record.id)

    assert not spool.exists()
    assert Path(record.aside).exists()


def test_a_damaged_record_is_shown_and_blocks_no_other(spool: Path) -> None:
    record = with_twin(spool)
    file, _ = find(record.id)
    damaged = Path(file).parent / "0badbad0.json"
    damaged.write_text("{")

    listed, problems = records()

    assert [listed_record.id for listed_record, _ in listed] == [record.id]
    assert [problem.id for problem in problems] == ["0badbad0"]
    with pytest.raises(BadInput, match="cannot be read"):
        find("0badbad0")
    undo(record.id)
    assert with_twin(spool).path == str(spool)


def test_a_record_that_is_forgotten_in_that_moment_is_none(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = with_twin(spool)
    honest = read_json

    def read(path: str) -> object:
        os.unlink(path)
        return honest(path)

    monkeypatch.setattr("tui_fs.job.aside_store.read_json", read)

    assert record.id
    assert records() == ([], [])


def test_a_check_writes_nothing(spool: Path) -> None:
    (spool / "precious").unlink()
    record = with_twin(spool)
    undo(record.id)
    begun = aside_store.new_record(
        aside_store.Action.RECREATE, look(str(spool), to_recreate=True).target
    )
    file = aside_store.keep(begun)

    look(str(spool), to_recreate=True)

    assert Path(file).exists()


def test_its_location_is_read_from_the_open_directory(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "precious").unlink()
    prospect = look(str(spool), to_recreate=True)
    moved = spool.parent.with_name("moved")

    def fail(*_: object) -> None:
        (spool.parent / Path(record_room()).name).mkdir()
        spool.parent.rename(moved)
        spool.parent.mkdir()
        raise OSError(errno.EIO, "")

    def record_room() -> str:
        ((record, _),) = aside_store.records()[0]
        return record.staging_dir

    monkeypatch.setattr("tui_fs.maintenance.exchange.recreate", fail)

    with pytest.raises(Refused, match="To repair it:"):
        recreate_directory(prospect, accept_occupants=False)

    assert len(aside_store.all_records()[0]) == 1


def test_a_record_that_cannot_be_removed_only_warns(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "precious").unlink()
    inode = spool.stat().st_ino
    prospect = look(str(spool), to_recreate=True)

    monkeypatch.setattr(os, "unlink", fail)

    made = recreate_directory(prospect, accept_occupants=False)

    assert spool.stat().st_ino != inode
    assert "cannot be removed" in made.warning
