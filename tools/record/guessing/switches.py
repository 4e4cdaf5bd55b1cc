"""Switches of a constructor that decide whether a part of it runs: one that needs an absent package, or that downloads weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage, set_init

BROKEN = ("NameError", "ModuleNotFoundError", "ImportError", "UnboundLocalError", "NotImplementedError: ")
"""Errors that no number mends: a branch lacks a name or a package, or was not written."""
ABSENT = "No module named"
"""In the message of an import that fails, and of an attribute that is read of an absent package."""
NO_NETWORK = re.compile(
    r"(URLError|HTTPError|ConnectionError|ConnectTimeout|SSLError|ProxyError|gaierror|LocalEntryNotFoundError|OfflineModeIsEnabled)\b"
    r"|.*(urlopen error|Max retries exceeded|name resolution|Name or service not known|couldn't connect to)",
    re.DOTALL,
)
"""Errors of what asks for a file of another machine."""


def is_unavailable(outcome: Outcome) -> bool:
    """Whether a constructor failed at what is not here, a package or the network: no value mends that but one by which it does without."""
    missing = ABSENT in outcome.error or bool(NO_NETWORK.match(outcome.error))
    return outcome.stage is Stage.CONSTRUCT and missing


def other_branches(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Where a branch cannot run: words for the constructor that choose another one, in place of those that choose it by default, and its switches turned;
    those first that the failed statement depends on."""
    if not outcome.error.startswith(BROKEN) and ABSENT not in outcome.error and not is_unavailable(outcome):
        return
    names = [name for name in outcome.place.init if name in options.init]
    for name in dict.fromkeys([*names, *options.init]):
        yield from _turned(attempt, (name,), options)
        usual = dict(attempt.init).get(name, repr(options.init[name].default))
        if isinstance(usual, str) and usual[:1] in "'\"":
            yield from (set_init(attempt, name, word) for word in options.words_of_init(name) if word != usual)
            yield from (set_init(attempt, name, "None"),) if is_unavailable(outcome) else ()


def without_downloads(attempt: Attempt, options: Options) -> Iterator[Attempt]:
    """An attempt that downloads weights with each switch of the constructor turned, and without each word: whether it still does the trial shows."""
    yield from _turned(attempt, tuple(options.init), options)
    for name, parameter in options.init.items():
        usual = dict(attempt.init).get(name, repr(parameter.default))
        if isinstance(usual, str) and usual[:1] in "'\"":
            yield set_init(attempt, name, "None")


def _turned(attempt: Attempt, names: Sequence[str], options: Options) -> Iterator[Attempt]:
    """The attempt with each of these parameters that is a truth value turned."""
    for name in names:
        usual = dict(attempt.init).get(name, repr(options.init[name].default))
        if usual in ("True", "False"):
            yield set_init(attempt, name, "False" if usual == "True" else "True")
