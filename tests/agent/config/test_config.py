"""`migrate.toml` and `[tool.migrate-agent]`: what is read, and the one line that a broken file gets."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from migrate_agent.agent.config.config import Config, load_config
from migrate_agent.agent.config.errors import ConfigError, MissingError, UsageError, UserError
from migrate_agent.agent.config.toml_location import line_of
from migrate_agent.tools.types import Example, Limits

FULL = """
[[example]]
module = "model.py:GPT"
setup = "from model import GPTConfig"
init = "GPTConfig(n_layer=2)"
call = "torch.randint(0, 128, (2, 32))"
train = true
domain = { min = -3, max = 3.0 }

[[example]]
module = "pkg/layers.py:Outer.Inner"
call = '''
x,  # a comment
y'''

[run]
sandbox = "process"
jobs = 2
branch = "jax/port"
exclude = ["tests/**"]

[limits]
seconds = 10
memory_gb = 1.5
"""


def write(root: Path, text: str, name: str = "migrate.toml") -> Path:
    (root / name).write_text(text, encoding="utf-8")
    return root


def refused(root: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(root)
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_absent_file_gives_defaults(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config == Config()
    assert config.examples() == ()
    assert config.limits.limits() == Limits()
    assert config.run.sandbox == "auto"


def test_every_key_is_read(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, FULL))
    first, second = config.examples()
    assert first == Example(
        unit="model.py:GPT",
        init="GPTConfig(n_layer=2)",
        call="torch.randint(0, 128, (2, 32))",
        setup="from model import GPTConfig",
        train=True,
        domain=(-3.0, 3.0),
        origin="config",
    )
    assert (second.unit, second.init, second.train, second.domain) == ("pkg/layers.py:Outer.Inner", "", None, None)
    assert config.run.model_dump() == {"sandbox": "process", "device": "cpu", "jobs": 2, "branch": "jax/port", "exclude": ("tests/**",)} | {
        "keep_unreached": False,
        "fallback": "",
    }
    assert config.limits.limits() == Limits(seconds=10.0, memory_bytes=3 * 2**29)


def test_pyproject_says_the_same(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    text = re.sub(r"^(\[+)", r"\1tool.migrate-agent.", FULL, flags=re.MULTILINE)
    assert load_config(write(mine, FULL)) == load_config(write(theirs, '[project]\nname = "x"\n' + text, "pyproject.toml"))


@pytest.mark.parametrize(
    "text",
    ['[project]\nname = "x"', "[project\nname =", '[project]\nname = "x"\ndependencies = ["migrate-agent"]\n[tool.ruff]\nline-length = 1'],
    ids=["other tables", "broken, but not about us", "a dependency on us"],
)
def test_foreign_pyproject_is_left_alone(tmp_path: Path, text: str) -> None:
    assert load_config(write(tmp_path, text, "pyproject.toml")) == Config()


def test_two_configurations_are_one_too_many(tmp_path: Path) -> None:
    write(tmp_path, FULL)
    write(tmp_path, '[project]\nname = "x"\n\n[tool.migrate-agent.run]\njobs = 2\n', "pyproject.toml")
    assert refused(tmp_path).startswith("pyproject.toml:4: [tool.migrate-agent] and migrate.toml both configure")


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().run.jobs = 3


EXAMPLE = '[[example]]\nmodule = "a.py:B"\ncall = "x"\n'

BROKEN = {
    "misspelt key": ('[[example]]\nmodul = "a.py:B"\ncall = "x"', "2: unknown key `example[0].modul`: did you mean `module`?"),
    "misspelt table": ("\n[limit]\nseconds = 1", "2: unknown key `limit`: did you mean `limits`?"),
    "nothing like it": ("[run]\nzzz = 1", "2: unknown key `run.zzz`: known here: sandbox, device, jobs, branch, exclude"),
    "misspelt in an inline table": (EXAMPLE + "domain = { min = 1, mx = 2 }", "4: unknown key `example[0].domain.mx`: did you mean `max`?"),
    "missing": (EXAMPLE + '\n[[example]]\nmodule = "a.py:B"', "5: `example[1]` needs call, what stands between"),
    "no file in the module": ('[[example]]\ncall = ""\nmodule = "B"', "3: `example[0].module` must be FILE.py:ClassName"),
    "file outside": ('[[example]]\nmodule = "../a.py:B"\ncall = ""', "2: `example[0].module` must be FILE.py:ClassName"),
    "not Python": (EXAMPLE + '\ninit = """\n(1,\n"""', "5: `example[0].init` is not Python: "),
    "setup not Python": (EXAMPLE + 'setup = "import"', "4: `example[0].setup` is not Python: "),
    "closes our parenthesis": ('[[example]]\nmodule = "a.py:B"\ncall = "x)(y"', "3: `example[0].call` must be what stands between"),
    "wrong type": (EXAMPLE + 'train = "yes"', "4: `example[0].train` must be a valid boolean, not 'yes'"),
    "unordered domain": (EXAMPLE + "domain = { min = 2, max = 1 }", "4: `example[0].domain` needs finite numbers with min < max"),
    "endless domain": (EXAMPLE + "domain = { min = -inf, max = 1 }", "4: `example[0].domain` needs finite numbers"),
    "single bracket": ('[example]\nmodule = "a.py:B"\ncall = ""', "1: `example` must be an array of tables: write [[example]]"),
    "double bracket": ("\n\n[[run]]\njobs = 1", "3: `run` must be a table, not [{'jobs': 1}]"),
    "choice": ('[run]\nsandbox = "podman"', "2: `run.sandbox` must be 'auto', 'docker', 'bubblewrap' or 'process', not 'podman'"),
    "no jobs": ("[run]\njobs = 0", "2: `run.jobs` must be greater than or equal to 1, not 0"),
    "no branch name": ('[run]\nbranch = "a b"', "2: `run.branch` is no name for a branch, not 'a b'"),
    "text for an array": ('[run]\nexclude = "tests"', "2: `run.exclude` must be an array, not 'tests'"),
    "endless": ("[limits]\nseconds = inf", "2: `limits.seconds` must be a finite number, not inf"),
    "negative": ("[limits]\nmemory_gb = -1", "2: `limits.memory_gb` must be greater than 0, not -1"),
    "a tolerance": ("[verify]\nrtol = 1e-2", "2: unknown key `verify.rtol`: known here: seed, timing, seconds, max_slowdown"),
    "not TOML": ("[run]\njobs = = 1", "2: not valid TOML: "),
    "twice": ("[run]\njobs = 1\njobs = 2", "3: not valid TOML: "),
    "unfinished": ("[run]\nexclude = [1,\n\n\n", "2: not valid TOML: "),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_file_gets_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(write(tmp_path, text)).startswith(f"migrate.toml:{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.migrate-agent.run]\njbs = 1", "3: unknown key `run.jbs`: did you mean `jobs`?"),
        ("[tool]\nmigrate-agent = 3", "3: `tool.migrate-agent` must be a table, not 3"),
        ('[tool.migrate-agent.example]\ncall = ""', "2: `example` must be an array of tables: write [[tool.migrate-agent.example]]"),
    ],
)
def test_broken_pyproject_gets_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(write(tmp_path, "# ours\n" + text, "pyproject.toml")) == f"pyproject.toml:{message}"


def test_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "migrate.toml").write_bytes(b"[run]\n# \xff\njobs = 1\n")
    assert refused(tmp_path) == "migrate.toml:2: is not UTF-8, as TOML must be"


def test_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "migrate.toml").mkdir()
    assert refused(tmp_path) == "migrate.toml: cannot be read: Is a directory"


def test_exit_statuses() -> None:
    assert [error("x").exit_status for error in (UserError, UsageError, ConfigError, MissingError)] == [1, 2, 2, 3]
    assert UserError("x", 3).exit_status == 3
    assert str(MissingError("no git")) == "no git"


NESTED = textwrap.dedent(
    '''\
    # a = 1
    a.b = """
    c = 3
    [t]
    """
    [[e]]
    x = [
      1,
    ]
    y = 2

    [[e]]
    y = 3
    [e.sub]
    "q.r" = { s = 4 }
    '''
)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a", "b"), 2),
        (("e", 0), 6),
        (("e", 0, "x"), 7),
        (("e", 0, "y"), 10),
        (("e", 1), 12),
        (("e", 1, "y"), 13),
        (("e", 1, "sub"), 14),
        (("e", 1, "sub", "q.r", "s"), 15),
        (("e", 1, "sub", "absent", "deeper"), 14),
        (("absent",), 1),
    ],
)
def test_line_of_a_key(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(NESTED, path) == line


@given(st.lists(st.sampled_from(["", "# note", 'text = """\nkey = 0\n"""']), max_size=4, unique_by=lambda text: text or object()))
def test_line_of_a_key_after_anything(before: list[str]) -> None:
    head = "".join(line + "\n" for line in before)
    assert line_of(head + "key = 1\n", ("key",)) == head.count("\n") + 1


def test_an_example_may_call_a_method_or_read_a_property(tmp_path: Path) -> None:
    table = '[[example]]\nmodule = "model.py:GPT"\n'
    first, second = load_config(write(tmp_path, f'{table}method = "generate"\ncall = "x, 3"\n{table}method = "size"\n')).examples()
    assert (first.method, first.call, second.method, second.call) == ("generate", "x, 3", "size", "")
    with pytest.raises(ConfigError, match="needs call"):
        load_config(write(tmp_path, table))
