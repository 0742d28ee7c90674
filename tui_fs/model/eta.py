"""Estimate the remaining time of a job from its prediction, and later from its own rate."""

TRUST_RATE_AFTER_S = 10.0
"""Only the measured rate counts after this time, or after a quarter of the entries."""

MIN_CONCLUSIVE_S = 0.5
"""The duration of shorter jobs depends more on their start than on their entries."""

RATE_SPREAD = 2**0.5
"""A rate that was measured over few of the entries may change by this factor."""

Range = tuple[float, float]


def from_rate(left: int, rate_per_s: float, mean_per_s: float, fraction: float) -> Range:
    """Return low and high seconds for `left` entries, by two rates.

    Args:
        fraction: removed share of the entries; the smaller it is, the wider is the range.
    """
    spread = RATE_SPREAD ** (1.0 - fraction)
    low, high = left / max(rate_per_s, mean_per_s), left / min(rate_per_s, mean_per_s)
    return low / spread, high * spread


def from_model(predicted_s: tuple[float, float, float], fraction: float, working_s: float) -> Range:
    """Return low and high remaining seconds by the prediction and the elapsed time.

    Args:
        predicted_s: low, expected and high seconds of the whole job.
        fraction: removed share of the entries.
    """
    low, _, high = predicted_s
    left = 1.0 - fraction
    return max(0.0, min(low * left, high - working_s)), high * left


def blend(
    rate: Range | None, model: Range | None, fraction: float, working_s: float
) -> Range | None:
    """Blend both ranges; the weight moves from the model to the rate over time."""
    if rate is None or model is None:
        return rate or model
    trust = min(1.0, max(4.0 * fraction, working_s / TRUST_RATE_AFTER_S))
    low, high = (
        trust * rate_end + (1.0 - trust) * model_end
        for rate_end, model_end in zip(rate, model, strict=True)
    )
    return low, high
