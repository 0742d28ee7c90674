"""The command lines that start the modules of tui-fs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tui_fs.linux.interpreter import module_command


@pytest.mark.parametrize("version", [(3, 10), sys.version_info])
def test_a_module_runs_with_its_arguments_and_without_the_working_directory(
    version: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, foreign = tmp_path / "installed", tmp_path / "foreign"
    for place in installed, foreign:
        place.mkdir()
        (place / "beside.py").write_text(f"PLACE = {place.name!r}")
    for name in "runpy", "json":
        (foreign / f"{name}.py").write_text("raise SystemExit('the working directory was used')")
    (installed / "started.py").write_text(
        "import beside, json, pickle, sys\n"
        "assert __name__ == '__main__' and pickle.loads(pickle.dumps(beside.PLACE))\n"
        "print(json.dumps([beside.PLACE, *sys.argv]))"
    )
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.setattr(sys, "version_info", version)
    command = module_command("started", "-x", "two words")
    output = subprocess.check_output(command, cwd=foreign, text=True)
    assert output == f'["installed", "{installed}/started.py", "-x", "two words"]\n'
