"""The configuration of a repository: `migrate.toml`, or `[tool.migrate-agent]` in its `pyproject.toml`.

The models below are the reference of what may stand there; anything else is an error that names file, line and key.
"""

from __future__ import annotations

import ast
import difflib
import math
import reprlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from migrate_agent.agent.config.errors import ConfigError
from migrate_agent.agent.config.toml_location import line_of, syntax_error
from migrate_agent.sandbox.base import Device
from migrate_agent.tools.compare.limits import Axis
from migrate_agent.tools.compare.limits import Limits as Compared
from migrate_agent.tools.portable import chips
from migrate_agent.tools.types import Example, Limits

CONFIG_FILE = "migrate.toml"
PYPROJECT_FILE = "pyproject.toml"
PYPROJECT_TABLE = ("tool", "migrate-agent")

_EXPECTED = {"tuple_type": "must be an array", "model_type": "must be a table", "string_pattern_mismatch": "is no name for a branch"}
"""What pydantic says of these means little to a reader of TOML."""

SandboxKind = Literal["auto", "docker", "bubblewrap", "process"]


def _parse_python(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"is not Python: {reason}") from None


def _statements(text: str) -> str:
    _parse_python(text)
    return text


def _arguments(text: str) -> str:
    match _parse_python(f"f({text}\n)").body:
        case [ast.Expr(value=ast.Call(func=ast.Name()))]:
            return text
        case _:  # `x) + g(y` closes our parenthesis
            raise ValueError("must be what stands between the parentheses of one call")


def _unit_id(text: str) -> str:
    path, colon, name = text.partition(":")
    parts = path.split("/")
    inside = not path.startswith("/") and ".." not in parts and "\\" not in path
    if not (colon and inside and path.endswith(".py") and all(part.isidentifier() for part in name.split("."))):
        raise ValueError("must be FILE.py:ClassName, with the file relative to the repository (and / between folders)")
    return text


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DomainTable(_Table):
    """`domain = { min = …, max = … }`: where inputs may lie when the verifier searches for a difference."""

    min: float
    max: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not (math.isfinite(self.min) and math.isfinite(self.max) and self.min < self.max):
            raise ValueError("needs finite numbers with min < max")
        return self


class ExampleTable(_Table):
    """`[[example]]`: how to construct and call one module. A class may have several."""

    module: Annotated[str, AfterValidator(_unit_id)]
    setup: Annotated[str, AfterValidator(_statements)] = ""
    init: Annotated[str, AfterValidator(_arguments)] = ""
    call: Annotated[str, AfterValidator(_arguments)] = ""
    full: Annotated[str, AfterValidator(_arguments)] = ""
    """The constructor's arguments in the real configuration, of which shapes alone are compared."""
    method: str = Field(default="", pattern=r"^([A-Za-z_][\w.]*(, [A-Za-z_][\w.]*)*)?$")
    """The method that is called in place of the module, or the property that is read."""
    train: bool | None = None
    domain: DomainTable | None = None

    def example(self) -> Example:
        """The same as the type that the stages exchange."""
        domain = (self.domain.min, self.domain.max) if self.domain else None
        return Example(
            self.module, self.init, self.call, self.setup, self.train, domain, origin="config", method=self.method, full=self.full
        )

    @model_validator(mode="after")
    def _called(self) -> Self:
        if not self.method and "call" not in self.model_fields_set:
            raise ValueError("needs call, what stands between the parentheses of the call (or method, for a property)")
        return self


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/") or "\\" in path:
        raise ValueError("must lie in the repository, relative to its root (and / between folders)")
    return path


Paths = Annotated[tuple[Annotated[str, AfterValidator(_inside)], ...], Field(strict=False)]


class UnitTable(_Table):
    """`[[unit]]`: what becomes of one module."""

    module: Annotated[str, AfterValidator(_unit_id)]
    strategy: Literal["rewrite", "torchax"] = "rewrite"
    """`torchax`: the mirror runs the original through torchax, and holds no rewrite of it."""


class ProgramTable(_Table):
    """`[[program]]`: a short run of a training script, by which its rewrite is judged."""

    run: str
    """`python train.py --option value`, from the repository's root."""
    reads: Paths = ()
    """Files and folders beyond those that git tracks."""
    writes: Paths = ()
    """What it writes and what counts of it."""
    steps: int = Field(default=0, ge=0)
    """Optimizer steps that are compared; 0 compares all of the run."""


class RunTable(_Table):
    """`[run]`: defaults of the command line's options, and files to leave alone."""

    sandbox: SandboxKind = "auto"
    device: Device = "cpu"
    jobs: int = Field(default=1, ge=1)
    branch: str = Field(default="", pattern=r"^[^\s~^:?*\[\\]*$")
    exclude: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Globs over POSIX paths relative to the repository."""
    fallback: Literal["", "torchax"] = ""
    """What becomes of modules that cannot be rewritten; "" leaves them out."""
    keep_unreached: bool = False
    """Keep lines of a port that no example reaches, below a comment, where stubs would take their place."""


class RewriteTable(_Table):
    """`[rewrite]`: how ports are written."""

    style: Literal["plain", "close"] | None = None
    """`plain`: Flax's own layers where these do the same. `close`: layers with torch's names and arguments throughout. By default that of the mirror
    which is there, or `plain`."""
    scan_layers: bool = False
    """Equal layers that are called one after the other become one scan over stacked parameters, which is compiled once."""


class LimitsTable(_Table):
    """`[limits]`: what one run of an example in the sandbox may use."""

    seconds: float = Field(default=Limits().seconds, gt=0, allow_inf_nan=False)
    memory_gb: float = Field(default=Limits().memory_bytes / 2**30, gt=0, allow_inf_nan=False)
    """In units of 2³⁰ bytes."""

    def limits(self) -> Limits:
        """The same as the type that the sandbox takes."""
        return Limits(seconds=self.seconds, memory_bytes=int(self.memory_gb * 2**30))


class ModelTable(_Table):
    """`[model]`: which language model is asked, and how. The key is only ever read from the environment (`OPENAI_API_KEY`)."""

    name: str = ""
    """One model, or several with commas between them, asked in turn."""
    base_url: str = ""
    structured: Literal["auto", "schema", "tool", "text"] = "auto"
    """How an answer's form is asked for; `auto` finds out what the server takes."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    context_tokens: int = Field(default=32_000, ge=1_000)
    output_tokens: int = Field(default=4_096, ge=16)
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    """Seconds for one request."""
    tries: int = Field(default=5, ge=1)
    """Requests for one answer, where faults may pass."""
    ensemble: bool = False
    """Ask all models each time, and try their answers one after the other."""


class VerifyTable(_Table):
    """`[verify]`: what the verifier draws and times. Nothing here loosens a limit."""

    seed: int = Field(default=0, ge=0)
    """Another one draws other states, inputs and initial values."""
    timing: Literal["", "eager", "compile"] = ""
    """What a step is timed beside: torch's eager mode, or `torch.compile` too (which needs a C++ compiler, and minutes)."""
    seconds: float = Field(default=300.0, ge=0, allow_inf_nan=False)
    """What is optional of a large unit begins within these seconds; 0 leaves nothing out."""
    max_slowdown: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """A step may take this many times as long as torch's quickest; 0 reports the times and judges nothing."""


def _topology(text: str) -> str:
    try:
        return chips.topology(text).name
    except chips.TopologyError as error:
        raise ValueError(f"has no such topology: {error}") from None


class TpuTable(_Table):
    """`[tpu]`: what verified units are compiled for, ahead of time, with the extra `tpu`; without a topology nothing is."""

    topology: Annotated[tuple[Annotated[str, AfterValidator(_topology)], ...], Field(strict=False)] = ()
    """Such as `v5e:1x1`, `v6e:4x4`, `tpu7x:2x2x1`. A unit must compile for all of them."""
    batch: int = Field(default=0, ge=0)
    """In place of the example's; 0 takes the example's."""
    dtype: Literal["", "bf16"] = ""
    """What floats are in place of float32."""


Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CompareTable(_Table):
    """`[compare]`: what two runs may differ by (`migrate-agent compare`); 0.005 is 0.5 %."""

    loss: Share = Compared().loss
    loss_rollback: Share = Compared().loss_rollback
    slower: Share = Compared().slower
    slower_rollback: Share = Compared().slower_rollback
    error_rate: Share = Compared().error_rate
    latency: Share = Compared().latency
    noise: Share | None = None
    """Relative standard deviation between runs of different seeds; without it, several runs a side show it."""
    by: Axis = "auto"
    at: Annotated[tuple[float, ...], Field(strict=False)] = ()
    points: int = Field(default=Compared().points, ge=1)
    window: float = Field(default=Compared().window, ge=0, le=1)
    metrics: Annotated[tuple[str, ...], Field(strict=False)] = ()

    def limits(self, options: Mapping[str, Any]) -> Compared:
        """The same as the type that `compare` takes, with the command line's options in their place."""
        return Compared(**{**self.model_dump(), **options})


class CacheTable(_Table):
    """`[cache]`: where verdicts are kept for other machines."""

    address: str = ""
    """A folder, or an address of fsspec such as `s3://bucket/verdicts`; "" for none. `MIGRATE_AGENT_CACHE` takes its place."""


class BudgetTable(_Table):
    """`[budget]`: what a run, and what each unit of it, may spend. Where one is spent, the unit ends, and the run goes on."""

    attempts: int = Field(default=4, ge=1)
    """Proposals for one unit, the rules' own included."""
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    unit_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    unit_tokens: int | None = Field(default=None, ge=0)
    unit_seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class PriceTable(_Table):
    """`[[price]]`: US dollars for a million tokens of a model, in place of the list price that we know."""

    model: str
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class Config(_Table):
    """All of a repository's configuration; every table has defaults, so an absent file is an empty configuration."""

    example: Annotated[tuple[ExampleTable, ...], Field(strict=False)] = ()
    program: Annotated[tuple[ProgramTable, ...], Field(strict=False)] = ()
    unit: Annotated[tuple[UnitTable, ...], Field(strict=False)] = ()
    run: RunTable = RunTable()
    rewrite: RewriteTable = RewriteTable()
    limits: LimitsTable = LimitsTable()
    verify: VerifyTable = VerifyTable()
    tpu: TpuTable = TpuTable()
    compare: CompareTable = CompareTable()
    model: ModelTable = ModelTable()
    cache: CacheTable = CacheTable()
    budget: BudgetTable = BudgetTable()
    price: Annotated[tuple[PriceTable, ...], Field(strict=False)] = ()

    def examples(self) -> tuple[Example, ...]:
        """The `[[example]]` tables, in the order of the file."""
        return tuple(table.example() for table in self.example)


def load_config(root: Path) -> Config:
    """The configuration of the repository at `root`, or the defaults where it has none.

    Raises `ConfigError` with one line that names file, line and key.
    """
    own, shared = root / CONFIG_FILE, root / PYPROJECT_FILE
    in_pyproject = _pyproject_table(shared)
    if own.exists():
        if in_pyproject is not None:
            line = line_of(_read(shared), PYPROJECT_TABLE)
            raise ConfigError(f"{PYPROJECT_FILE}:{line}: [tool.migrate-agent] and {CONFIG_FILE} both configure this repository: keep one")
        return _validate(_parse(own), own, ())
    return Config() if in_pyproject is None else _validate(in_pyproject, shared, PYPROJECT_TABLE)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError(f"{file.name}:{line}: is not UTF-8, as TOML must be") from None
    except OSError as error:
        raise ConfigError(f"{file.name}: cannot be read: {error.strerror}") from None


def _parse(file: Path) -> dict[str, Any]:
    text = _read(file)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, reason = syntax_error(text, error)
        raise ConfigError(f"{file.name}:{line}: not valid TOML: {reason}") from None


def _pyproject_table(file: Path) -> Mapping[str, Any] | None:
    """`[tool.migrate-agent]`, or None. A broken file that never names us is not ours to complain about."""
    if not file.is_file() or b"migrate-agent" not in file.read_bytes():
        return None
    table: Any = _parse(file)
    for key in PYPROJECT_TABLE:
        table = table.get(key) if isinstance(table, Mapping) else None
    if table is None or isinstance(table, Mapping):
        return table
    line = line_of(_read(file), PYPROJECT_TABLE)
    raise ConfigError(f"{file.name}:{line}: `{'.'.join(PYPROJECT_TABLE)}` must be a table, not {reprlib.repr(table)}")


def _validate(document: Mapping[str, Any], file: Path, prefix: tuple[str, ...]) -> Config:
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        text = _read(file)
        first = min(error.errors(), key=lambda details: _rank(details, text, prefix))
        line = line_of(text, (*prefix, *first["loc"]))
        raise ConfigError(f"{file.name}:{line}: {_explain(first, prefix)}") from None


def _rank(details: ErrorDetails, text: str, prefix: tuple[str, ...]) -> tuple[bool, int]:
    """A misspelt key comes before the missing key that it causes; else the first in the file."""
    return details["type"] != "extra_forbidden", line_of(text, (*prefix, *details["loc"]))


def _explain(details: ErrorDetails, prefix: tuple[str, ...]) -> str:
    key = _dotted(details["loc"])
    match details["type"]:
        case "extra_forbidden":
            return f"unknown key `{key}`: {_suggest(details['loc'])}"
        case "missing":
            return f"`{key}` is missing"
        case "value_error":
            return f"`{key}` {details['ctx']['error']}"
        case "tuple_type" if isinstance(details["input"], Mapping):
            return f"`{key}` must be an array of tables: write [[{'.'.join((*prefix, key))}]]"
        case kind:
            expected = _EXPECTED.get(kind) or details["msg"].replace("Input should", "must")
            return f"`{key}` {expected}, not {reprlib.repr(details['input'])}"


def _dotted(path: tuple[str | int, ...]) -> str:
    """`example[0].domain.max`, with the tables of an array counted from 0."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def _suggest(path: tuple[str | int, ...]) -> str:
    names = list(_table_at(path[:-1]).model_fields)
    close = difflib.get_close_matches(str(path[-1]), names, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(names)}"


def _table_at(path: tuple[str | int, ...]) -> type[_Table]:
    """The model of the table at `path`, which holds a key that is not known there."""
    table: type[_Table] = Config
    for key in path:
        if isinstance(key, str):
            table = next(model for model in _models(table.model_fields[key].annotation))
    return table


def _models(annotation: Any) -> list[type[_Table]]:
    """The models named anywhere in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, _Table):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
