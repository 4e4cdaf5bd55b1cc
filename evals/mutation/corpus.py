"""The corpora that the verifier is measured on (`tests/corpus/`): hand-written wrong and right rewrites and cheats.

A right rewrite is a JAX module in a file of its own; its docstring says in its first line what it is, and below, as `key: value` lines,
which `original` it stands for (a file of `originals/`, whose docstring holds the examples, `call: …` and `method: name(…)`) and its `family`.
The unit is the class `M`; of an original with `kind: function` it is the function `f`. Classes in lines `unit: …` are units of their own, which
were not verified.

A wrong rewrite or a cheat is a list of edits of a right rewrite: a row `[[case]]` of `wrong/<original>.toml` with `name`, `title`, `family`,
the `place` of the divergence, `from` (the right rewrite's name), and `old` and `new`, or several `[[case.edit]]` with these two. Each `old`
stands exactly once in the text. A case that shares little with any right rewrite is a file like those of `right/`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.jax_side.port_file import parse
from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.types import Evidence, Example, Inventory, Limits, SourceFile, Unit
from migrate_agent.tools.verify import Options, verify

Kind = Literal["wrong", "cheats", "right"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FOLDER = Path(__file__).parents[2] / "tests" / "corpus"
HELPERS = "nnx_layers_jax"
UNIT = Unit("model.py", "M", "model_jax.py", "rewrite")
FUNCTION = Unit("model.py", "f", "model_jax.py", "rewrite", kind="function")
SELF = "the unit itself"
"""The name of the unit in verdicts where no submodule of it diverges; in a header it is `.`."""
CASE_KEYS = {"original", "family", "place", "only", "skip", "port"}
ROW_KEYS = {"name": True, "title": True, "family": True, "place": False, "only": False, "skip": False, "from": True}
"""Facts of a row of a table, and whether each must be there; beside them it has `old` and `new`, or `edit`."""
ORIGINAL_KEYS = {"kind", "unit", "init", "call", "method", "setup", "train", "domain"}
DOCSTRING = re.compile(r'\Ar?"""(.+?)"""\n*', re.DOTALL)
CASE_SECONDS = 120.0
LOCALISED = frozenset(
    """forward_fp64 forward_fp32 forward_bf16 shapes_fp64 edges_fp64 nonfinite worst_input training_fp64 gradients_inputs
    gradients_parameters gradients_edges buffers""".split()
)
"""Checks that compare values of submodules; a failure of any other check names no submodule."""

FAST = """
right/mlp_norm_by_hand right/inplace_dynamic_update right/embedding_one_hot_lookup
wrong/mlp_eps_1e6 wrong/mlp_tanh_gelu wrong/mlp_transposed_weight wrong/mlp_affine_ignored wrong/mlp_nan_swallowed
wrong/inplace_view_update_lost wrong/inplace_no_bias_correction wrong/inplace_ring_stale wrong/embedding_padding_gradient
wrong/spectral_conjugated_filter
right/function_smoothing_by_one_hot wrong/function_smoothing_ignored_baked_in
right/settings_refused wrong/settings_heads_baked_in wrong/settings_eps_ignored
cheats/mlp_imports_original cheats/mlp_pure_callback cheats/mlp_memoised cheats/mlp_shape_specific cheats/mlp_zero_vjp
cheats/mlp_patches_clock cheats/mlp_forges_result
""".split()
"""A fixed part that takes under a minute; the cases of an original stand together, so that torch runs once for them."""


@dataclass(frozen=True)
class Original:
    """A torch module, or a function, with its examples: constructor arguments and calls, as text."""

    name: str
    title: str
    source: str
    examples: tuple[Example, ...]
    unit: Unit = UNIT
    others: tuple[Unit, ...] = ()


@dataclass(frozen=True)
class Case:
    """A candidate, and what it is.

    `place` is the submodule that localisation must name ("" where none is to be named); `only` names the sandboxes that it may run in
    (all where empty), and `skip` says why not in others. `port` is what a file says of a port that is no mirror (`port: …`, TOML, a line each).
    """

    kind: Kind
    name: str
    title: str
    original: str
    family: str
    place: str
    source: str
    only: tuple[str, ...] = ()
    skip: str = ""
    port: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """`wrong/tanh_gelu`."""
        return f"{self.kind}/{self.name}"


class CorpusError(Exception):
    """A file of the corpora with an invalid docstring; the message says which and why."""


def load_originals(folder: Path = FOLDER) -> dict[str, Original]:
    """Name → original. Raises `CorpusError`."""
    return {path.stem: _original(path) for path in sorted((folder / "originals").glob("*.py"))}


def load_cases(kinds: Sequence[Kind] = KINDS, folder: Path = FOLDER) -> list[Case]:
    """All cases of these kinds, by kind and name. Raises `CorpusError`."""
    return [case for kind in kinds for case in _cases_of_kind(kind, folder)]


def _cases_of_kind(kind: Kind, folder: Path) -> list[Case]:
    files, tables = sorted((folder / kind).glob("*.py")), sorted((folder / kind).glob("*.toml"))
    cases: dict[str, Case] = {}
    for case in [*(_case(kind, path) for path in files), *(case for path in tables for case in _table_cases(kind, path, folder / "right"))]:
        if case.name in cases:
            raise CorpusError(f"{folder / kind}: two cases have the name {case.name!r}")
        cases[case.name] = case
    return [cases[name] for name in sorted(cases)]


def _table_cases(kind: Kind, path: Path, right: Path) -> list[Case]:
    """The cases of a table of edits; its name is the original's."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("case", [])
    except tomllib.TOMLDecodeError as error:
        raise CorpusError(f"{path}: {error}") from error
    return [_edited_case(kind, path, row, right) for row in rows]


def _edited_case(kind: Kind, path: Path, row: Mapping[str, Any], right: Path) -> Case:
    label = f"{path}: case {row.get('name', '?')!r}"
    if missing := [key for key, required in ROW_KEYS.items() if required and not row.get(key)]:
        raise CorpusError(f"{label}: it has no {', '.join(missing)}")
    if unknown := row.keys() - ROW_KEYS.keys() - {"old", "new", "edit"}:
        raise CorpusError(f"{label}: unknown keys: {', '.join(sorted(unknown))}")
    base = right / f"{row['from']}.py"
    if not base.exists():
        raise CorpusError(f"{label}: there is no {base}")
    _, facts, source = _header(base, CASE_KEYS)
    if facts.get("original") != [path.stem]:
        raise CorpusError(f"{label}: {base} does not rewrite {path.stem}")
    text = f'"""{row["title"]}"""\n{_edited(_without_docstring(source), row, label)}'
    port = _port(facts)
    submodule_name, only = row.get("place", ""), tuple(row.get("only", "").replace(",", " ").split())
    return Case(
        kind,
        row["name"],
        row["title"],
        path.stem,
        row["family"],
        SELF if submodule_name == "." else submodule_name,
        text,
        only,
        row.get("skip", ""),
        port,
    )


def _edited(text: str, row: Mapping[str, Any], label: str) -> str:
    """The text with the row's edits made in order. Raises `CorpusError` where an `old` does not stand in it exactly once."""
    edits = row.get("edit") or [row]
    for number, edit in enumerate(edits, 1):
        if not edit.get("old") or "new" not in edit:
            raise CorpusError(f"{label}: edit {number} needs `old` and `new`")
        if (count := text.count(edit["old"])) != 1:
            raise CorpusError(f"{label}: edit {number}: its `old` stands {count} times in {row['from']}.py, not once: {edit['old']!r}")
        text = text.replace(edit["old"], edit["new"])
    return text


def _original(path: Path) -> Original:
    title, facts, source = _header(path, ORIGINAL_KEYS)
    if not facts.get("call"):
        raise CorpusError(f"{path}: its docstring has no line `call: …`")
    train = {"": None, "true": True, "false": False}[facts.get("train", [""])[0]]
    low_high = [float(text) for text in facts.get("domain", [""])[0].split()]
    domain = (low_high[0], low_high[1]) if low_high else None
    init, setup = facts.get("init", [""])[0], facts.get("setup", [""])[0]
    unit = FUNCTION if facts.get("kind") == ["function"] else UNIT
    calls = [("", call) for call in facts["call"]]
    calls += [(name, call) for name, _, call in (text.partition("(") for text in facts.get("method", ()))]
    examples = tuple(
        Example(unit.id, init, call.removesuffix(")") if name else call, setup, domain=domain, train=train, method=name)
        for name, call in calls
    )
    return Original(path.stem, title, source, examples, unit, tuple(replace(UNIT, name=name) for name in facts.get("unit", ())))


def _case(kind: Kind, path: Path) -> Case:
    title, facts, source = _header(path, CASE_KEYS)
    for key in ("original", "family"):
        if len(facts.get(key, [])) != 1:
            raise CorpusError(f"{path}: its docstring must have one line `{key}: …`")
    submodule = facts.get("place", [""])[0]
    only = tuple(facts.get("only", [""])[0].replace(",", " ").split())
    original, family = facts["original"][0], facts["family"][0]
    skip, part = facts.get("skip", [""])[0], SELF if submodule == "." else submodule
    return Case(kind, path.stem, title, original, family, part, source, only, skip, _port(facts))


def _port(facts: Mapping[str, list[str]]) -> Mapping[str, Any] | None:
    return parse("\n".join(facts["port"])) if "port" in facts else None


def _header(path: Path, allowed: set[str]) -> tuple[str, Mapping[str, list[str]], str]:
    """First line, facts and whole text of a file. The docstring is read even where the rest does not parse."""
    source = path.read_text(encoding="utf-8")
    docstring = DOCSTRING.match(source)
    if not docstring:
        raise CorpusError(f"{path}: it has no docstring")
    first, *lines = [line.strip() for line in docstring[1].strip().splitlines()]
    facts: dict[str, list[str]] = {}
    for line in filter(None, lines):
        key, colon, value = line.partition(": ")
        if not colon or key not in allowed:
            raise CorpusError(f"{path}: {line!r} is no line of the form `key: value` with a key of {', '.join(sorted(allowed))}")
        facts.setdefault(key, []).append(value.strip())
    return first, facts, source


def _without_docstring(source: str) -> str:
    return DOCSTRING.sub("", source, count=1)


def helper_names(source: str) -> set[str]:
    """The names that a candidate imports from the vendored helpers."""
    pattern = re.compile(rf"^from {HELPERS} import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
    return {name.strip() for match in pattern.finditer(source) for name in (match[1] or match[2]).split(",") if name.strip()}


def write_trees(original: Original, candidate: str, folder: Path) -> tuple[Path, Path]:
    """Write both trees of a repository: `model.py`, and `model_jax.py` with the helpers that it imports."""
    theirs, ours = folder / "original", folder / "candidate"
    names = helper_names(candidate)
    files = {theirs / "model.py": original.source, ours / "model_jax.py": candidate}
    files[ours / f"{HELPERS}.py"] = helpers.render(names) if names else ""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # An unchanged file keeps its time of change, so that cached results of the original stay
        # valid.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return theirs, ours


def inventory(root: Path, unit: Unit = UNIT, others: Sequence[Unit] = ()) -> Inventory:
    """The inventory of an original's tree."""
    return Inventory(root, (SourceFile("model.py", "model", "model_jax.py", "model_jax", True),), (*others, unit))


def with_rngs(example: Example) -> Example:
    """The example for the candidate: the same texts, with `rngs`."""
    init = f"{example.init}, rngs=rngs" if example.init else "rngs=rngs"
    return replace(example, init=init)


def verify_case(original: Original, candidate: str, sandbox: Sandbox, folder: Path, options: Options | None = None) -> Evidence:
    """Verify a candidate's text against the original. One folder for all candidates of an original lets torch run once."""
    theirs, ours = write_trees(original, candidate, folder)
    options = options or Options(limits=Limits(seconds=CASE_SECONDS))
    translated = [with_rngs(example) for example in original.examples]
    unit = original.unit
    files = inventory(theirs, unit, original.others)
    return verify(unit, original.examples, translated, theirs, ours, files, sandbox, folder / "work", options)


def named_place(evidence: Evidence) -> str | None:
    """The submodule that the first failed verdict names, "" for none, and None where that verdict compares no submodule's values."""
    failed = next((verdict for verdict in evidence.verdicts if verdict.status == "fail"), None)
    if failed is None or failed.check not in LOCALISED:
        return None
    return "" if failed.submodule is None else failed.submodule or SELF


def refusal_of(evidence: Evidence) -> dict[str, str]:
    """`check` and `detail` of the first verdict that refuses; of all passed, an empty check."""
    refused = [verdict for verdict in evidence.verdicts if verdict.status != "pass"]
    first = next((verdict for verdict in refused if verdict.status == "fail"), refused[0] if refused else None)
    return {"check": first.check if first else "", "detail": first.detail[:300] if first else "every check passed"}
