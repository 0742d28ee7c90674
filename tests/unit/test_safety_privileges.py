"""Privileges that the person did not have before are not used."""

import itertools
import os

import pytest

from tui_fs.model.errors import Refused
from tui_fs.safety import privileges
from tui_fs.safety.privileges import refuse_borrowed_privileges


def become(monkeypatch: pytest.MonkeyPatch, **ids: int) -> None:
    """Make this process appear to have these ids, and 1000 for the others."""
    for name in ("getuid", "geteuid", "getgid", "getegid"):
        monkeypatch.setattr(os, name, itertools.repeat(ids.get(name, 1000)).__next__)


@pytest.mark.parametrize(
    "ids",
    [
        {"geteuid": 0},
        {"getuid": 0},
        {"getegid": 0},
        {"getgid": 0},
        {"geteuid": 1001},
        {"getuid": 0, "geteuid": 0, "getegid": 0},
    ],
)
def test_ids_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch, ids: dict[str, int]) -> None:
    become(monkeypatch, **ids)
    with pytest.raises(Refused, match="borrowed privileges") as refusal:
        refuse_borrowed_privileges()
    assert refusal.value.rule == "setuid"
    assert "sudo" in refusal.value.advice


@pytest.mark.parametrize("ids", [{}, {"getuid": 0, "geteuid": 0}, {"getgid": 5, "getegid": 5}])
def test_ids_that_agree_are_not(monkeypatch: pytest.MonkeyPatch, ids: dict[str, int]) -> None:
    become(monkeypatch, **ids)
    refuse_borrowed_privileges()


def test_file_capabilities_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        @staticmethod
        def getauxval(kind: object) -> int:
            return int(getattr(kind, "value", -1) == 23)  # AT_SECURE, elf.h

    monkeypatch.setattr(privileges.ctypes, "CDLL", lambda _: Library)  # type: ignore[attr-defined]
    with pytest.raises(Refused, match="borrowed privileges"):
        refuse_borrowed_privileges()


def test_this_very_process_is_not_refused() -> None:
    refuse_borrowed_privileges()
