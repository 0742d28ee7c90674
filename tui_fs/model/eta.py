"""How long a running job will still take: by its own rate, and by the prediction until then."""

TRUST_RATE_AFTER_S = 10.0
"""From then on only the measured rate counts, and from a quarter of the entries on."""

SHORTEST_TELLING_S = 0.5
"""The duration of shorter jobs depends more on their start than on their entries."""

Range = tuple[float, float]


def by_rate(left: int, rate_per_s: float, mean_per_s: float) -> Range:
    """Return low and high seconds for what is left, between two rates."""
    return left / max(rate_per_s, mean_per_s), left / min(rate_per_s, mean_per_s)


def by_model(predicted_s: tuple[float, float, float], fraction: float, working_s: float) -> Range:
    """Return low and high seconds left by the prediction, and by what has passed already.

    Args:
        predicted_s: low, expected and high of the whole.
        fraction: of the entries that are removed.
    """
    low, _, high = predicted_s
    left = 1.0 - fraction
    return max(0.0, min(low * left, high - working_s)), high * left


def together(
    rate: Range | None, model: Range | None, fraction: float, working_s: float
) -> Range | None:
    """Return one range: at first the model's, with every second more that of the rate."""
    if rate is None or model is None:
        return rate or model
    trust = min(1.0, max(4.0 * fraction, working_s / TRUST_RATE_AFTER_S))
    low, high = (
        trust * rate_end + (1.0 - trust) * model_end
        for rate_end, model_end in zip(rate, model, strict=True)
    )
    return low, high
