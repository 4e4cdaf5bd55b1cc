"""From the command line, the environment and the configuration to a model that can be asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.errors import MissingError, UsageError, require
from migrate_agent.agent.model.caller import Cache, Caller, load_replies
from migrate_agent.agent.model.endpoint import Endpoint
from migrate_agent.agent.model.language_model import LanguageModel, Settings
from migrate_agent.agent.model.ledger import Allowance, Ledger, read
from migrate_agent.agent.model.prices import Price, price_of
from migrate_agent.agent.runs.folder import RunFolder
from migrate_agent.agent.runs.state import Settings as RunSettings

TRAJECTORY = "trajectory.jsonl"
"""In the run's folder: every call of the run, which `--replay` takes."""


def connect(settings: RunSettings, config: Config, folder: RunFolder, tell: Callable[[str], None]) -> LanguageModel:
    """The model that the run was started with.

    Raises `MissingError` where no endpoint is named, `UsageError` where a bound on money cannot be kept since a model has no price.
    """
    table, budget = config.model, config.budget
    names, url = tuple(name.strip() for name in settings.model.split(",") if name.strip()), settings.base_url
    answers = load_replies(Path(settings.replay)) if settings.replay else None
    if answers is not None:
        asks = [entry.ask for entry in read(Path(settings.replay))]
        names, url = names or tuple(dict.fromkeys(ask.model for ask in asks)), url or asks[0].endpoint
    key = os.environ.get("OPENAI_API_KEY", "")
    if answers is None:
        require("model", "--model", alternative="use --no-llm")
    if answers is None and not key and not url:
        raise MissingError("a model was named, but no endpoint: set OPENAI_API_KEY, or OPENAI_BASE_URL (--base-url), or use --no-llm")
    prices = tuple(Price(price.model, price.input, price.output) for price in config.price)
    for name in names:
        if (budget.cost is not None or budget.unit_cost is not None) and price_of(name, prices) is None:
            raise UsageError(f"no price is known for {name}, so a bound on cost cannot be kept: add a [[price]] for it to migrate.toml")
    ledger = Ledger(
        folder / TRAJECTORY,
        Allowance(budget.cost, budget.tokens, None),
        Allowance(budget.unit_cost, budget.unit_tokens, None),
    )
    endpoint = Endpoint(url, key, table.timeout, table.tries, told=tell)
    cache = Cache(folder.home / "cache") if answers is None else None
    caller = Caller(endpoint, ledger, cache, folder.id, prices, answers)
    chosen = Settings(names, url, table.structured, table.temperature, table.context_tokens, table.output_tokens, table.ensemble)
    return LanguageModel(caller, chosen)
