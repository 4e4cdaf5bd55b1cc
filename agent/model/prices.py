"""What tokens cost, in US dollars a million: list prices, which users override with `[[price]]` in the configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Price(NamedTuple):
    """US dollars a million tokens."""

    model: str
    input: float
    output: float


LIST: tuple[Price, ...] = (
    Price("gpt-4o", 2.5, 10.0),
    Price("gpt-4o-mini", 0.15, 0.6),
    Price("gpt-4.1", 2.0, 8.0),
    Price("gpt-4.1-mini", 0.4, 1.6),
    Price("gpt-4.1-nano", 0.1, 0.4),
    Price("o3", 2.0, 8.0),
    Price("o4-mini", 1.1, 4.4),
    Price("gpt-5", 1.25, 10.0),
    Price("gpt-5-mini", 0.25, 2.0),
    Price("gpt-5-nano", 0.05, 0.4),
)
"""OpenAI's list prices as published in August 2025 (https://platform.openai.com/docs/pricing). They change: the configuration has the last word."""


def price_of(model: str, own: Iterable[Price]) -> Price | None:
    """The price of a model by its exact name, the user's first; `None` where nobody gave one."""
    return next((price for price in (*own, *LIST) if price.model == model), None)


def cost(price: Price | None, input_tokens: int, output_tokens: int) -> float:
    """US dollars; nothing where there is no price."""
    return (price.input * input_tokens + price.output * output_tokens) / 1e6 if price else 0.0
