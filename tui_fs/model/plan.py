"""A plan: everything a supervisor needs to know to run a job, and nothing it could guess."""

from dataclasses import dataclass

from tui_fs.model.caller import CallerIdentity
from tui_fs.model.calls import TraceSource
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PathStr
from tui_fs.model.space import freed_in_words
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Totals
from tui_fs.model.target import Target, check_paths
from tui_fs.model.units import counted


@dataclass(frozen=True, slots=True)
class Expected:
    """What the survey says will be deleted.

    Attributes:
        totals: with filters, only what matches them; without the target's own directory
            when that is kept.
        complete: the survey had counted everything.
        freed_bytes_min, freed_bytes_max: blocks of the entries.
        metadata_bytes_max: what may come back besides.
        shared_bytes: what may stay because reflink copies or snapshots own the same blocks.
        is_on_overlay: a lower layer may have all of it, which then frees nothing.
        matching_directories: directories whose names match the filter by name. They stay: filters
            select no directories.
    """

    totals: Totals
    freed_bytes_min: int
    freed_bytes_max: int
    complete: bool
    metadata_bytes_max: int = 0
    shared_bytes: int = 0
    matching_directories: int = 0
    is_on_overlay: bool = False

    @property
    def freed_bytes_most(self) -> int:
        """Everything that may come back."""
        return self.freed_bytes_max + self.metadata_bytes_max

    @property
    def about_directories(self) -> str:
        """Why directories stay whose names match the filter by name; empty if there are none."""
        if not self.matching_directories:
            return ""
        names = counted(self.matching_directories, "directory name", "directory names")
        verb = "matches" if self.matching_directories == 1 else "match"
        return (
            f"{names} {verb}, but filters select only entries that are not directories. "
            "To delete directories, name them as targets: 'tui-fs survey' lists directories of one "
            "name, and N in the browser marks them all."
        )

    @property
    def freed_words(self) -> str:
        """The space that comes back, for a person."""
        least, most = self.freed_bytes_min, self.freed_bytes_max
        return freed_in_words(
            least,
            most,
            self.metadata_bytes_max,
            self.shared_bytes,
            is_on_overlay=self.is_on_overlay,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A confirmed deletion.

    Raises:
        BadInput: it has no target, or one without an absolute path.

    Attributes:
        created_at: seconds since the epoch.
        confirmed_from: the directory the person stood in; it must not be deleted.
        tools: absolute path of each tool the strategy starts, found when planning.
        writable_by_others: directories in it in which somebody other than the user and root
            may write.
        trace: the source the person asked for; None lets the supervisor pick the best.
        name_typed: the person has typed the target's name, or the word where there are several.
        continues: the job that died and is taken up by this one; empty for a new one.
    """

    job_id: str
    created_at: float
    targets: tuple[Target, ...]
    strategy: StrategyName
    options: Options
    tools: dict[str, str]
    expected: Expected
    predicted: Estimate | None
    confirmed_from: PathStr
    requester: CallerIdentity
    writable_by_others: int = 0
    trace: TraceSource | None = None
    name_typed: bool = False
    continues: str = ""

    def __post_init__(self) -> None:
        """Refuse a plan for nothing."""
        check_paths(self.paths)

    @property
    def paths(self) -> tuple[PathStr, ...]:
        """The paths of all targets."""
        return tuple(target.path for target in self.targets)
