"""Regenerate docs/contract-matrix.md; further arguments go to pytest (such as -k)."""

import os
import sys
from pathlib import Path

import pytest

from tests.matrix.page import WRITE_VARIABLE

if __name__ == "__main__":
    os.environ[WRITE_VARIABLE] = "1"
    sys.exit(pytest.main([str(Path(__file__).parent), "-n", "0", *sys.argv[1:]]))
