"""The shape of an estimate in JSON."""

from tui_fs.model.codec import argv_fields
from tui_fs.model.estimate import Estimate


def estimate_as_json(estimate: Estimate) -> dict[str, object]:
    """Return one strategy's estimate in the shape of the CLI contract."""
    return {
        "strategy": estimate.strategy,
        "seconds_low": round(estimate.seconds_low, 3),
        "seconds": round(estimate.seconds, 3),
        "seconds_high": round(estimate.seconds_high, 3),
        "syscalls": estimate.syscalls,
        "other_calls": estimate.other_calls,
        "processes": estimate.processes,
        "peak_memory_bytes": estimate.peak_memory_bytes,
        "memory_reason": estimate.memory_reason,
        "feasible": estimate.feasible,
        "race_safe": estimate.race_safe,
        "mount_safe": estimate.mount_safe,
        "reasons": list(estimate.reasons),
        **argv_fields("command", estimate.command),
        "rests_on": estimate.rests_on,
        "calls_rest_on": estimate.calls_rest_on,
        "advice": estimate.advice,
    }
