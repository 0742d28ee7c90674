"""What the superuser may really do."""

from pathlib import Path

import pytest

from tui_fs.linux.permissions import Capability, missing_capabilities, user_namespace


def test_capabilities_are_read_bit_by_bit(tmp_path: Path) -> None:
    # The status of a process in a usual container, and one that does not tell
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t00000000a80425fb\n")
    asked = (Capability.DAC_OVERRIDE, Capability.SYS_ADMIN, Capability.PERFMON)
    missing = missing_capabilities(*asked, status=str(status))
    assert missing == (Capability.SYS_ADMIN, Capability.PERFMON)
    status.write_text("Name:\tx\n")
    assert missing_capabilities(*asked, status=str(status)) == asked


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("         0          0 4294967295\n", None),
        ("         0       1000          1\n", "0 1000 1"),
        ("0 0 1\n", "0 0 1"),
        ("0 100000 65536\n65536 1000 1\n", "0 100000 65536, 65536 1000 1"),
        ("", "empty"),
    ],
)
def test_a_user_namespace_is_known_by_its_mapping(
    tmp_path: Path, content: str, expected: str | None
) -> None:
    (tmp_path / "uid_map").write_text(content)
    assert user_namespace(str(tmp_path / "uid_map")) == expected
    assert user_namespace(str(tmp_path / "missing")) is None
