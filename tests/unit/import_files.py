"""Files to import, and the survey's report of them."""

import json
from pathlib import Path
from typing import Any

from tui_fs.model.survey import Listing, Survey
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.listing import listing_of


def last(survey: ImportedSurvey) -> Survey:
    *_, state = survey.run()
    return state


def written(directory: Path, text: str | bytes, name: str = "file.json") -> str:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def tree_file(directory: Path, *entries: Any, top: dict[str, Any] | None = None) -> str:
    """Write a file with these entries in its top directory."""
    whole = [1, 2, {"progname": "x"}, [{"name": "/top", **(top or {})}, *entries]]
    return written(directory, json.dumps(whole))


def listing(survey: ImportedSurvey, path: str) -> Listing:
    return listing_of(survey.collector.table, path, survey.names(path))


DIRECTORY = '[1,2,{},[{"name":"/t"}'
