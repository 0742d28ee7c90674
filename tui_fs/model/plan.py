"""A plan: the complete input of a supervisor, so that it need not guess."""

from msgspec import Struct

from tui_fs.model.caller import CallerIdentity
from tui_fs.model.calls import TraceSource
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PathStr
from tui_fs.model.space import freed_in_words
from tui_fs.model.strategy import Mechanism, Options, StrategyName
from tui_fs.model.survey import Totals
from tui_fs.model.target import Target, check_paths
from tui_fs.model.units import counted


class Expected(Struct, frozen=True):
    """The entries to delete according to the survey.

    Attributes:
        totals: with filters, only matching entries; without the directory of a target that is
            kept, or shared with other machines.
        complete: the survey had finished.
        freed_bytes_min, freed_bytes_max: bytes of the blocks of the entries.
        metadata_bytes_max: metadata bytes that may be freed in addition.
        shared_bytes: bytes that may stay because reflink copies or snapshots own the same blocks.
        is_on_overlay: a lower layer may contain everything, and deleting then frees nothing.
        matching_directories: directories whose names match the name filter. They stay, because
            filters select no directories.
        linked_names: names whose removal frees no inode, because it has other names (hard links).
    """

    totals: Totals
    freed_bytes_min: int
    freed_bytes_max: int
    complete: bool
    metadata_bytes_max: int = 0
    shared_bytes: int = 0
    matching_directories: int = 0
    is_on_overlay: bool = False
    linked_names: int = 0

    @property
    def freed_bytes_most(self) -> int:
        """The maximum of freed bytes, including metadata."""
        return self.freed_bytes_max + self.metadata_bytes_max

    @property
    def about_directories(self) -> str:
        """Why directories that match the name filter stay; empty if there are none."""
        if not self.matching_directories:
            return ""
        names = counted(self.matching_directories, "directory name", "directory names")
        verb = "matches" if self.matching_directories == 1 else "match"
        return (
            f"{names} {verb}, but filters select only entries that are not directories. To "
            "delete directories, name them as targets: 'tui-fs survey' lists directories with "
            "the same name, and N in the browser marks them all."
        )

    @property
    def freed_words(self) -> str:
        """The freed space, in words."""
        least, most = self.freed_bytes_min, self.freed_bytes_max
        return freed_in_words(
            least,
            most,
            self.metadata_bytes_max,
            self.shared_bytes,
            is_on_overlay=self.is_on_overlay,
        )


class Plan(Struct, frozen=True):
    """A confirmed deletion.

    Raises:
        BadInput: it has no target, or a target without an absolute path.

    Attributes:
        created_at: seconds since the epoch.
        confirmed_from: the current directory of the user; it must not be deleted.
        tools: absolute path of each tool that the strategy starts, found when planning.
        writable_by_others: directories in the targets in which a user other than this one and
            root may write.
        trace: the call source that the user chose; None lets the supervisor select the best.
        name_typed: the user has typed the name of the target, or the word for several targets.
        confined_by: what keeps the tools inside the targets.
        continues: id of the dead job that this one resumes; empty for a new job.
        file_system: the type of the file system of the first target; empty if not recorded.
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
    confined_by: tuple[Mechanism, ...] = ()
    file_system: str = ""

    def __post_init__(self) -> None:
        """Refuse a plan without targets."""
        check_paths(self.paths)

    @property
    def paths(self) -> tuple[PathStr, ...]:
        """The paths of all targets."""
        return tuple(target.path for target in self.targets)
