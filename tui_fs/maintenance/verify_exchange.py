"""What may follow an exchange: it is taken back, or what a killed run left is put in order."""

from collections.abc import Collection

from tui_fs.linux.pins import pin_of
from tui_fs.maintenance.attributes import Attributes, differences, read_attributes
from tui_fs.maintenance.move_contents import Drained, remove_drained
from tui_fs.maintenance.renames import DirEntryRef, exchange_checked, identity_of
from tui_fs.maintenance.replacement_dir import ReplacementDir, open_directory_at
from tui_fs.model.errors import Refused
from tui_fs.model.paths import displayable
from tui_fs.model.target import Pin
from tui_fs.model.units import counted


def refuse_changed(held: int, wanted: Attributes) -> None:
    """Raise Refused unless a directory still has the attributes that its twin got."""
    changed = differences(read_attributes(held), wanted)
    if changed:
        raise Refused(
            f"Somebody has changed the directory's {displayable(changed[0])} in this very moment.",
            "Try again.",
            rule="changed",
        )


def take_back(
    place: DirEntryRef, other: DirEntryRef, held: int, twin: ReplacementDir, why: OSError | Refused
) -> None:
    """Put a directory back, and with it what has come into its twin meanwhile; remove that.

    Args:
        place, other: the names of the twin and of the directory now.
        held: the directory, open for reading.
        why: what the caller is going to raise.

    Raises:
        OSError, Missing, Refused: it could not be put back or not all entries could be moved; or
            both had an entry of one name (rule "clash").
    """
    exchange_checked(place, other, twin.identity, identity_of(held))
    kept = remove_drained(other, twin.descriptor, held).kept
    if kept:
        name, new_name = kept[0]
        raise Refused(
            f"{why} Somebody made {counted(len(kept), 'name', 'names')} twice meanwhile.",
            f"Both entries are there: beside {displayable(name)} stands {displayable(new_name)}.",
            rule="clash",
        ) from why


def finish(left: DirEntryRef, place: DirEntryRef, known: Collection[Pin]) -> Drained:
    """Remove the directory that a killed run has left; its entries go to the one at the place.

    Args:
        known: the two directories that were to be exchanged; others are not touched.

    Raises:
        OSError: an entry cannot be moved.
        Refused: other directories stand there; nothing was changed.
    """
    with open_directory_at(left) as old, open_directory_at(place) as new:
        pins = pin_of(old), pin_of(new)
        are_known = all(any(pin.is_same_later(recorded) for recorded in known) for pin in pins)
        if pins[0] == pins[1] or not are_known:
            raise Refused(
                "Other directories stand there than those that were to be exchanged.",
                "Look at both, and move what you need yourself.",
                rule="changed",
            )
        return remove_drained(left, old, new)
