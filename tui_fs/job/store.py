"""Where jobs are kept: one folder each, readable by their owner only."""

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tui_fs.model.codec import decode, encode
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Plan

_ID_BYTES = 3
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job."""

    path: str

    @property
    def job_id(self) -> str:
        """The name by which the person addresses the job."""
        return os.path.basename(self.path)

    @property
    def plan(self) -> str:
        """What was confirmed."""
        return os.path.join(self.path, "plan.json")

    @property
    def journal(self) -> str:
        """One event a line."""
        return os.path.join(self.path, "events.jsonl")

    @property
    def report(self) -> str:
        """Written once, when the job has ended."""
        return os.path.join(self.path, "report.json")

    @property
    def socket(self) -> str:
        """Where the supervisor takes commands."""
        return os.path.join(self.path, "control.sock")

    @property
    def log(self) -> str:
        """What the supervisor says beside the journal, tracebacks among it."""
        return os.path.join(self.path, "log")

    @property
    def lock(self) -> str:
        """Locked by the supervisor as long as it lives."""
        return os.path.join(self.path, "lock")

    @property
    def empty_directory(self) -> str:
        """The empty directory that rsync copies."""
        return os.path.join(self.path, "empty")


def state_directory() -> PathStr:
    """Return the directory of tui-fs below XDG_STATE_HOME."""
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return PathStr(os.path.join(home, "tui-fs"))


def jobs_directory() -> str:
    """Return the directory that holds one folder for each job."""
    return os.path.join(state_directory(), "jobs")


def new_job_id() -> str:
    """Return an unused short name for a job."""
    while True:
        job_id = secrets.token_hex(_ID_BYTES)
        if not os.path.lexists(os.path.join(jobs_directory(), job_id)):
            return job_id


def create(plan: Plan) -> JobFolder:
    """Make the folder of a new job and write its plan; JobFailed if that is impossible."""
    folder = JobFolder(os.path.join(jobs_directory(), plan.job_id))
    try:
        os.makedirs(jobs_directory(), mode=0o700, exist_ok=True)
        os.mkdir(folder.path, 0o700)
        os.mkdir(folder.empty_directory, 0o700)
        write_json(folder.plan, {"schema": _SCHEMA, **encode(plan)})
    except OSError as error:
        raise JobFailed(
            f"The job cannot be written to {folder.path}: {os.strerror(error.errno or 0)}.",
            "Make room there, or set XDG_STATE_HOME to another place. Nothing was deleted.",
        ) from error
    return folder


def find(job_id: str) -> JobFolder:
    """Return the folder of a job; BadInput if there is none of that name."""
    folder = JobFolder(os.path.join(jobs_directory(), job_id))
    if not job_id.isalnum() or not os.path.isfile(folder.plan):
        raise BadInput(f"There is no job {job_id!r}.", "tui-fs jobs lists them.")
    return folder


def all_jobs() -> Iterator[JobFolder]:
    """Yield the folders of all jobs that have a plan, the newest first."""
    try:
        folders = [JobFolder(entry.path) for entry in os.scandir(jobs_directory())]
    except FileNotFoundError:
        return
    except OSError as error:
        raise JobFailed(f"{jobs_directory()} cannot be read: {error.strerror}.") from error
    dated = [(os.stat(f.plan).st_mtime, f) for f in folders if os.path.isfile(f.plan)]
    for _, folder in sorted(dated, key=lambda pair: pair[0], reverse=True):
        yield folder


def load_plan(folder: JobFolder) -> Plan:
    """Return the plan of a job; BadInput if the file is not one."""
    value = read_json(folder.plan)
    if value.get("schema") != _SCHEMA:
        raise BadInput(f"{folder.plan} was written by another version of tui-fs.")
    return decode(Plan, value)


def read_json(path: str) -> dict[str, Any]:
    """Return the JSON object in a file; BadInput if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise BadInput(f"{path} does not hold a JSON object.")
    return value


def write_json(path: str, value: dict[str, Any]) -> None:
    """Write a file that is either whole or not there, even after a power failure."""
    partial = f"{path}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(descriptor)
    os.replace(partial, path)
