"""What counts as not run though every call runs it is told: the lines that ran were not seen."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from migrate_agent.tools.types import Unit
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.reach import Reaching

CLASS = "class Net:\n    def __init__(self):\n        self.width = 1\n\n    def __call__(self, x):\n        return x\n"
INHERITED = "class Net(Base):\n    def extra(self, x):\n        return x\n"
FUNCTION = "def net(x):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "kind", "ran", "unseen"),
    [
        (CLASS, "module", set(), ["src/net_jax.py:3 (Net.__init__): self.width = 1, which every call runs"]),
        (CLASS, "module", {0}, []),
        (INHERITED, "module", set(), []),
        (FUNCTION, "function", set(), ["src/net_jax.py:2 (net): return x, which every call runs"]),
        (FUNCTION, "function", {0}, []),
    ],
)
def test_what_every_call_runs(text: str, kind: Literal["module", "function"], ran: set[int], unseen: list[str]) -> None:
    unit = cast(Unit, SimpleNamespace(name="net" if kind == "function" else "Net", target="src/net_jax.py", kind=kind))
    reaching = Reaching(cast(Any, SimpleNamespace(unit=unit, port=None)))
    digests = {f"src/net_jax.py:{key}": frozenset(row) for key, row in counted_file(text).digests_of(frozenset(ran)).items()}
    vars(reaching).update(texts={unit.target: text}, ran=digests)
    assert list(map(str, reaching._unseen())) == unseen


PATCH = """class {name}({base}):
    def {method}(self, x, mask):
        if mask is not None and mask.ndim == 2{more}:
            {rest}
        return x
"""


@pytest.mark.parametrize(
    ("base", "method", "more", "narrower"),
    [
        ("nn.Module", "__call__", "", 0),
        ("nn.Module", "__call__", " and x.ndim == 3", 1),
        ("Function", "forward", "", 0),
        ("Function", "forward", " and x.ndim == 3", 1),
    ],
)
def test_conditions_are_compared_with_those_of_the_same_function(base: str, method: str, more: str, narrower: int) -> None:
    """A module's `forward` is `__call__` in the port, and that of an autograd function is not."""
    original = PATCH.format(name="Net", base=base, method="forward", more="", rest="mask = mask[None]")
    port = PATCH.format(name="Net", base=base, method=method, more=more, rest='raise NotImplementedError("no example")')
    ran = {}
    for path, text in (("net.py", original), ("net_jax.py", port)):
        file = counted_file(text)
        looked_at = [number for number, place in enumerate(file.places) if isinstance(place.node, (ast.If, ast.Return))]
        ran[path] = frozenset(looked_at)
    inventory = SimpleNamespace(files=[SimpleNamespace(path="net.py", target="net_jax.py", adopted="")])
    reaching = Reaching(cast(Any, SimpleNamespace(inventory=inventory, port=None)))
    digests = {f"net_jax.py:{key}": row for key, row in counted_file(port).digests_of(ran["net_jax.py"]).items()}
    vars(reaching).update(
        texts={"net_jax.py": port},
        ran=digests,
        port={"net_jax.py": {"Net"}},
        original=({"net.py": {"Net"}}, {"net.py": original}),
        _ran=({"net.py": ran["net.py"]}, {}),
    )
    assert len(list(reaching._narrower())) == narrower


PAIR = "is_pair(x) and not is_text(x)"


@pytest.mark.parametrize(
    ("function", "condition", "narrower"),
    [("parse", PAIR, False), ("parse", f"{PAIR} and is_long(x)", True), ("other", PAIR, True)],
)
def test_conditions_of_packages_are_those_of_their_source(tmp_path: Path, function: str, condition: str, narrower: bool) -> None:
    """What ran of an installed package is not counted: a part that no call looked at is that of the same function of the source, or the port's own."""
    text = "def parse(x):\n    if {0}:\n        return tuple(x)\n    return x, x\n"
    site = tmp_path / "helpers.py"
    site.write_text(text.format(PAIR).replace("def parse", f"def {function}"))
    port = text.format(condition).replace("return tuple(x)", 'raise NotImplementedError("no example")')
    file = counted_file(port)
    looked_at = [number for number, place in enumerate(file.places) if isinstance(place.node, (ast.If, ast.Return))]
    inventory = SimpleNamespace(files=[SimpleNamespace(path=str(site), target="lib_jax/helpers.py", adopted="lib 1.0")])
    reaching = Reaching(cast(Any, SimpleNamespace(inventory=inventory, port=None)))
    vars(reaching).update(
        texts={"lib_jax/helpers.py": port},
        ran={f"lib_jax/helpers.py:{key}": row for key, row in file.digests_of(looked_at).items()},
        port={"lib_jax/helpers.py": {"parse"}},
        original=({}, {}),
        _ran=({}, {}),
    )
    assert bool(list(reaching._narrower())) == narrower


SURFACE = """def helper(x, strict):
    if strict:
        if x.ndim != 2:
            raise ValueError("two axes")
        print("strict")
        x = x[0]
    return x


def unused(x):
    y = x + 1
    return y
"""


def test_lines_that_refuse_or_tell_are_no_lines_of_the_surface() -> None:
    file = counted_file(SURFACE)
    ran = {number for number, place in enumerate(file.places) if ast.unparse(place.node) == "return x" or place.line == 2}
    rows = file.missed({"helper", "unused"}, ran)
    assert sorted(file.places[number].line for number in file.within(rows)) == [3, 6, 11, 12]


BASE = """class Base(Root):
    def __init__(self, x, trained=False):
        if trained:
            {trained}
        else:
            self.x = x

class Net(Base):
    def __init__(self, x):
        super().__init__(x)
        self.width = 1
"""
STUB = "raise NotImplementedError('no example')"


@pytest.mark.parametrize(
    ("arm", "drops", "before", "left_out"),
    [
        (STUB, "", (), 0),
        ("self.x = Param(x)", "", (), 0),
        ("self.x = Param(x)", "", ("self.x = Param(x)",), 0),
        ("self.x = Param(x)", "if trained:\n            self.x = Param(x)\n        else:\n            self.x = x", (), 1),
    ],
)
def test_what_a_constructor_of_a_base_leaves_out(arm: str, drops: str, before: tuple[str, ...], left_out: int) -> None:
    """A subclass with a constructor of its own runs that of its base by `super()`: a branch of it that no call takes is there, or a stub is."""
    original, port = BASE.format(trained="self.x = Parameter(x)"), BASE.format(trained=arm)
    if drops:
        port = port.replace(drops, "self.x = x")
        assert "trained:" not in port
    idle = {"net.py": {"self.x = Parameter(x)"}, "net_jax.py": {arm}}
    ran: dict[str, frozenset[int]] = {}
    digests: dict[str, frozenset[str]] = {}
    for path, text in (("net.py", original), ("net_jax.py", port)):
        file = counted_file(text)
        ran[path] = frozenset(n for n, place in enumerate(file.places) if ast.unparse(place.node) not in idle[path])
        again = frozenset(n for n, place in enumerate(file.places) if ast.unparse(place.node) in before)
        digests |= {f"{path}:{key}": row for key, row in file.digests_of(ran[path] | again).items()}
    inventory = SimpleNamespace(files=[SimpleNamespace(path="net.py", target="net_jax.py", adopted="")])
    unit = SimpleNamespace(name="Net", source="net.py", target="net_jax.py", kind="module", id="net.py:Net")
    reaching = Reaching(cast(Any, SimpleNamespace(inventory=inventory, port=None, unit=unit, reached_before={})))
    vars(reaching).update(
        texts={"net_jax.py": port},
        ran=digests,
        port={"net_jax.py": {"Net", "Base"}},
        original=({"net.py": {"Net", "Base"}}, {"net.py": original}),
        _of_bases={("net.py", "Base.__init__"): False},
        _ran=({"net.py": ran["net.py"]}, {"net_jax.py": ran["net_jax.py"]}),
        _refused={},
    )
    assert len(list(reaching._left_out())) == left_out


OUTER = """class Net:
    def __call__(self, x):
        return x

    def fetched(self, name):
        def read(path):
            return open(path).read()

        {first}
        return read(name)
"""


@pytest.mark.parametrize(
    ("port", "runs", "left_out"),
    [
        (f"class Net:\n    def __call__(self, x):\n        return x\n\n    def fetched(self, name):\n        {STUB}\n", (), 0),
        ("class Net:\n    def __call__(self, x):\n        return x\n\n    def fetched(self, name):\n        return open(name)\n", (), 1),
        (
            f"class Net:\n    def __call__(self, x):\n        return x\n\n    def fetched(self, name):\n        {STUB}\n",
            ("name = str(name)",),
            1,
        ),
    ],
)
def test_a_function_in_another_one_is_left_out_with_it(port: str, runs: tuple[str, ...], left_out: int) -> None:
    """Of a method that becomes a stub as a whole, the functions in it are no places of their own."""
    original = OUTER.format(first="name = str(name)")
    ran = {}
    for path, text in (("net.py", original), ("net_jax.py", port)):
        places = counted_file(text).places
        done = {"return x", *runs}
        ran[path] = frozenset(n for n, place in enumerate(places) if ast.unparse(place.node) in done)
    inventory = SimpleNamespace(files=[SimpleNamespace(path="net.py", target="net_jax.py", adopted="")])
    unit = SimpleNamespace(name="Net", source="net.py", target="net_jax.py", kind="module", id="net.py:Net")
    reaching = Reaching(cast(Any, SimpleNamespace(inventory=inventory, port=None, unit=unit, reached_before={})))
    vars(reaching).update(
        texts={"net_jax.py": port},
        ran={f"net_jax.py:{key}": row for key, row in counted_file(port).digests_of(ran["net_jax.py"]).items()},
        port={"net_jax.py": {"Net"}},
        original=({"net.py": {"Net"}}, {"net.py": original}),
        _of_bases={},
        _ran=({"net.py": ran["net.py"]}, {"net_jax.py": ran["net_jax.py"]}),
        _refused={},
    )
    assert (len([row for row in reaching._left_out() if row.owner.endswith("read")]) > 0) == bool(left_out)


LEFT = "def used(x, n):\n    {body}\n    return x\n"
ENVIRONMENT = "if n:\n        if os.environ.get('A') == '0':\n            warn(n)\n        elif os.environ.get('A') == '1':\n            pass\n        else:\n            "
NEVER_RUN = [
    (f"{ENVIRONMENT}raise ValueError(n)", 2),
    (f"{ENVIRONMENT}x = n", 5),
    ("if n:\n        if (m := n):\n            raise ValueError(m)", 3),
    ("if n:\n        print(n)\n    else:\n        if x:\n            raise ValueError(x)", 2),
    ("raise NotImplementedError('gone')\n    return", 0),
    ("return x\n    x = x + 1", 1),
    ("if n:\n        x = x + 1\n        raise ValueError(n)\n        x = x + 2", 2),
    ("if n:\n        return x\n        x = x + 2", 3),
    ("for _ in n:\n        x = x + 1\n        continue\n        x = x + 2", 4),
    ("while n:\n        break\n        n.clear()", 3),
]


@pytest.mark.parametrize(("body", "count"), NEVER_RUN)
def test_what_stands_behind_a_statement_that_leaves_its_block_is_no_line(body: str, count: int) -> None:
    file = counted_file(LEFT.format(body=body))
    rows = file.missed({"used"}, set())
    assert len(file.within(rows)) == count


def test_what_only_never_runs_is_replaced_and_not_counted() -> None:
    file = counted_file("def used(x):\n    return x\n    x = x + 1\n")
    rows = file.missed({"used"}, {0})
    assert [row.lines for row in rows] == [(3, 3)] and file.within(rows) == set()
