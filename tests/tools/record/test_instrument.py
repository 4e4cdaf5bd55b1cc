"""Instrumented code does what the plain code does, and the table says what its expressions were."""

from __future__ import annotations

import builtins
import importlib
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import libcst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate_agent.tools.record.instrument import OBSERVE, OBSERVE_ATTRIBUTE, OBSERVE_CALL, Finder, compile_instrumented
from migrate_agent.tools.record.new_memory import FILLED, filled
from migrate_agent.tools.record.observe import Recorder
from migrate_agent.tools.types import Observed, Span

SNIPPETS = {
    "zero-argument super": """
        class A:
            def f(self, x): return ("A", x)
        class B(A):
            def f(self, x): return ("B", super().f(x), super(B, self).f(x), __class__.__name__)
        def main(): return B().f(1)
    """,
    "super in a nested function with cell": """
        class A:
            def __init__(self): self.a = 1
        class B(A):
            def __init__(self):
                def inner(): return super(B, self).__init__()
                inner()
                super().__init__()
        def main(): return vars(B())
    """,
    "locals and del": """
        def main():
            a = 1
            b = [1, 2, 3]
            del b[0]
            del a
            return sorted(locals().items()), "a" in locals()
    """,
    "vars, eval and exec see the frame": """
        def main():
            y = 3
            space = {}
            exec("z = 5", space)
            return eval("y + 1"), space["z"], sorted(vars())
    """,
    "frames and names": """
        import sys
        def main():
            return sys._getframe().f_code.co_name, sys._getframe(0).f_lineno, (lambda: sys._getframe(1).f_code.co_name)()
    """,
    "comprehension scopes": """
        def main():
            x = 10
            rows = [[x * y for y in range(3) if y] for x in range(2)]
            table = {k: v for k, v in zip("ab", rows)}
            return rows, table, {x for x in (1, 1)}, list(x + 1 for x in range(2)), x
    """,
    "walrus": """
        def main():
            kept = [last := n for n in range(4) if (half := n // 2)]
            while (n := len(kept)) > 1: kept.pop()
            return kept, last, half, n
    """,
    "f-strings": '''
        def main():
            x, width = 3.14159, 8
            return width + 1, f"{x:{width}.2f}|{x!r}|{x = }|{'a' + 'b'}" f"""{
                x
            }"""
    ''',
    "decorators and defaults": """
        import functools
        def twice(f):
            @functools.wraps(f)
            def g(*args, **kwargs): return 2 * f(*args, **kwargs)
            return g
        SIZE = 4
        def main():
            calls = []
            def default(): calls.append(1); return 5
            @twice
            def f(x, y=default(), *, z=SIZE): return x + y + z
            return f(1), f(1, 2, z=3), len(calls), f.__name__, f.__wrapped__.__defaults__
    """,
    "global and nonlocal": """
        COUNT = 0
        def main():
            global COUNT
            total = 0
            def add(n):
                nonlocal total
                total += n
                return total
            COUNT += add(2)
            COUNT += add(3)
            return COUNT, total
    """,
    "star arguments": """
        def f(*args, **kwargs): return args, sorted(kwargs.items())
        def main():
            a, b = [1, 2], {"x": 3}
            first, *rest = a
            return f(*a, 0, *a, **b, y=4), [*a, *a], {**b}, first, rest, f(*(n for n in a))
    """,
    "async": """
        import asyncio
        class Context:
            async def __aenter__(self): return 1
            async def __aexit__(self, *error): return False
        async def numbers(n):
            for i in range(n):
                await asyncio.sleep(0)
                yield i
        async def run():
            async with Context() as one:
                return one, [i async for i in numbers(3)], [await asyncio.sleep(0, j) for j in range(2)]
        def main(): return asyncio.run(run())
    """,
    "generators": """
        def echo():
            got = yield 1
            while got is not None:
                got = yield got * 2
            return "end"
        def outer():
            result = yield from echo()
            yield result
        def main():
            g = outer()
            return next(g), g.send(3), g.send(4), next(g)
    """,
    "match": """
        import enum
        class Color(enum.Enum):
            RED = 1
        class Point:
            __match_args__ = ("x", "y")
            def __init__(self, x, y): self.x, self.y = x, y
        def kind(value):
            match value:
                case Color.RED: return "red"
                case Point(0, y=y) if y > 0: return ("up", y)
                case [first, *_]: return first
                case {"k": v, **rest}: return v, rest
                case 1 | 2: return "small"
                case -3.5: return "negative"
                case None: return "none"
                case str() as s: return s.upper()
            return "other"
        def main():
            return [kind(v) for v in (Color.RED, Point(0, 2), Point(0, -2), [7, 8], {"k": 1, "l": 2}, 2, -3.5, None, "a", 9.0)]
    """,
    "augmented assignment": """
        class Box:
            reads = 0
            def __init__(self): self._v, self.items, self.n = 1, [1, 2], 0
            @property
            def v(self): Box.reads += 1; return self._v
            @v.setter
            def v(self, value): self._v = value
        def main():
            box, asked = Box(), []
            def get(): asked.append(1); return box
            get().v += 2
            get().n -= 1
            get().items[0] *= 5
            x = y = [1]
            x += [2]
            return box.v, box.n, box.items, Box.reads, len(asked), x is y
    """,
    "private names": """
        class A:
            __hidden = 3
            def __init__(self): self.__x = self.__hidden
            def get(self): self.__x += 1; return self.__x, sorted(vars(self))
        def main(): return A().get()
    """,
    "annotations are not evaluated": """
        def main():
            x: undefined_name = 3
            y: "also undefined"
            def f(a: int = x) -> str: return a
            return x, f(), sorted(f.__annotations__)
    """,
    "postponed annotations": """
        '''Documented.'''
        from __future__ import annotations
        import dataclasses
        @dataclasses.dataclass
        class C:
            x: Undefined = 1
            y: list[int] = dataclasses.field(default_factory=list)
        def main(): return C(), C.__annotations__, __doc__
    """,
    "source, line numbers and tracebacks": """
        import inspect, traceback
        def f(a,
              b):  # a comment
            return (a /
                    b)
        class K:
            '''Doc.'''
            def method(self): '''M.'''; return 1
        def main():
            try:
                f(1, 0)
            except ZeroDivisionError as error:
                frames = traceback.extract_tb(error.__traceback__)
                where = [(frame.name, frame.lineno, frame.line) for frame in frames]
            return inspect.getsource(f), inspect.getsource(K), K.__doc__, K.method.__doc__, where, inspect.signature(f)
    """,
    "short circuits and chains": """
        def main():
            seen = []
            def see(x): seen.append(x); return x
            result = see(0) and see(1), see(2) or see(3), see(1) < see(5) < see(2) < see(9), see(4) if see(0) else see(6)
            assert see(7), see(8)
            return result, seen
    """,
    "named tuples, enums, type variables": """
        import collections, enum, typing
        Pair = collections.namedtuple("Pair", "a b")
        T = typing.TypeVar("T")
        class Row(typing.NamedTuple):
            x: int = 3
        Level = enum.Enum("Level", "LOW HIGH")
        def main(): return Pair(1, 2), Row(), list(Level), Pair.__module__ == __name__, T.__module__ == __name__
    """,
    "exceptions and with": """
        import contextlib
        @contextlib.contextmanager
        def note(log):
            log.append("in")
            try: yield log
            finally: log.append("out")
        def main():
            with note([]) as log, contextlib.suppress(KeyError):
                raise KeyError("x")
            try: int("a")
            except (ValueError, TypeError) as error: return log, str(error)
            else: return None
            finally: log.append("finally")
    """,
    "unicode": """
        def main():
            größe, 名 = {"ä": 1}, "é"
            return größe["ä"], 名 + "ü", len("日本" + 名)
    """,
    "lambdas, slices and ellipsis": """
        class Keys:
            def __getitem__(self, key): return key
        def main():
            k, n = Keys(), 2
            return k[1:n, ..., None, ::n], k[n], (lambda a, *, b=n: a + b)(1), k[*range(n)], sorted([3, 1], key=lambda v: -v)
    """,
}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(builtins, OBSERVE, recorder.observe, raising=False)
    monkeypatch.setattr(builtins, OBSERVE_CALL, recorder.observe_call, raising=False)
    monkeypatch.setattr(builtins, OBSERVE_ATTRIBUTE, recorder.observe_attribute, raising=False)
    monkeypatch.setattr(builtins, FILLED, filled, raising=False)
    return recorder


def run(path: Path, code: Any) -> Any:
    namespace = {"__name__": path.stem, "__file__": str(path)}
    module = type(sys)(path.stem)
    module.__dict__.update(namespace)
    sys.modules[path.stem] = module
    try:
        exec(code, module.__dict__)
        return module.__dict__["main"]()
    finally:
        del sys.modules[path.stem]


@pytest.mark.parametrize("name", SNIPPETS)
def test_behaves_as_the_plain_code(name: str, tmp_path: Path, recorder: Recorder) -> None:
    path = tmp_path / "snippet_under_test.py"
    source = dedent(SNIPPETS[name]).lstrip()
    path.write_text(source)
    linecache.checkcache()
    plain = run(path, compile(source, str(path), "exec", dont_inherit=True))
    watched = run(path, compile_instrumented(source, str(path), "snippet.py", recorder))
    assert repr(watched) == repr(plain)
    assert recorder.table()["snippet.py"]


def test_an_error_has_the_same_message_and_place(tmp_path: Path, recorder: Recorder) -> None:
    source = "def main():\n    x = 1\n    return x.missing(\n        2)\n"
    with pytest.raises(AttributeError, match="'int' object has no attribute 'missing'") as info:
        run(tmp_path / "broken.py", compile_instrumented(source, "broken.py", "broken.py", recorder))
    assert info.traceback[-1].lineno == 2


def test_a_very_deep_expression_still_runs(tmp_path: Path, recorder: Recorder) -> None:
    source = "def main():\n    x = 1\n    return " + " + ".join(["x"] * 900) + "\n"
    assert run(tmp_path / "deep.py", compile_instrumented(source, "deep.py", "deep.py", recorder)) == 900


OBSERVED_SOURCE = """
import functools, math
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, act=nn.GELU, norm=functools.partial(nn.LayerNorm, eps=1e-6)):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act, self.norm = act(), norm(4)
        self.register_buffer("steps", torch.zeros(1))
        self.count = 0
    def helper(self, x): return x
    def forward(self, x, mask=None):
        self.count += 1
        self.steps += 1
        x += F.gelu(self.helper(x))
        größe = x.shape; b = größe[0]
        y = self.act(self.norm(self.fc(x.view(b, -1))))
        z = [math.sqrt(i) for i in range(2)]
        if mask is not None:
            y = y * mask
        g = lambda t: t.sum()
        return y, g(y), x.dtype, torch.relu, self.fc.weight, torch.einsum

def main():
    net = Net()
    for size in (1, 2, 3, 4, 5, 6):
        net(torch.zeros(size, 4))
"""

EXPECTED = {
    "self.count": ("int",),
    "self.steps": ("tensor",),
    "F.gelu": ("function:torch.nn.functional.gelu",),
    "self.helper": ("method:observed_net.Net.helper",),
    "self.helper(x)": ("tensor",),
    "x.shape": ("size",),
    "größe": ("size",),
    "größe[0]": ("int",),
    "self.act": ("module:torch.nn.GELU",),
    "self.fc": ("module:torch.nn.Linear",),
    "self": ("module:observed_net.Net",),
    "act": ("class:torch.nn.GELU",),
    "norm": ("partial:class:torch.nn.LayerNorm",),
    "x.view": ("method:torch.Tensor.view",),
    "math.sqrt": ("function:math.sqrt",),
    "math.sqrt(i)": ("float",),
    "mask": ("none",),
    "mask is not None": ("bool",),
    "x.dtype": ("dtype",),
    "torch.relu": ("function:torch.relu",),
    "torch.einsum": ("function:torch.einsum",),
    "self.fc.weight": ("parameter",),
    "nn.Linear": ("class:torch.nn.Linear",),
    "range": ("class:builtins.range",),
    "functools.partial": ("class:functools.partial",),
}


def texts(source: str, table: dict[Span, Observed]) -> dict[str, Observed]:
    """Text of each observed span → what was observed."""
    lines = source.split("\n")
    return {lines[span.line - 1][span.column : span.end_column]: seen for span, seen in table.items() if span.line == span.end_line}


@pytest.fixture
def observed(tmp_path: Path, recorder: Recorder) -> dict[str, Observed]:
    run(tmp_path / "observed_net.py", compile_instrumented(OBSERVED_SOURCE, "net.py", "net.py", recorder))
    return texts(OBSERVED_SOURCE, recorder.table()["net.py"])


def test_the_table_says_what_expressions_were(observed: dict[str, Observed]) -> None:
    assert {text: observed[text].kinds for text in EXPECTED} == EXPECTED
    assert observed["g"].kinds == ("function:observed_net.<lambda>@24",)


def test_shapes_and_dtypes_are_bounded(observed: dict[str, Observed]) -> None:
    seen = observed["self.norm(self.fc(x.view(b, -1)))"]
    assert seen == Observed(("tensor",), ((1, 4), (2, 4), (3, 4), (4, 4)), ("float32",), whole=True)


CHANGING_SOURCE = """
import torch
import torch.nn as nn

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.net = nn.ReLU(inplace=True), nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
    def forward(self, one, two, three, four):
        first = self.act(one)
        second = self.net(input=two)
        third = torch.add(three, 1)
        kept = {"views": [four[0]]}
        fourth = self.act(four)
        return first + one, second + two, third, fourth, kept

def main():
    with torch.no_grad():
        Outer()(*[torch.zeros(2, 4) for _ in range(4)])
    with torch.inference_mode():
        Outer()(*[torch.zeros(2, 4) for _ in range(4)])
"""


def test_changes_in_place_are_noted(tmp_path: Path, recorder: Recorder) -> None:
    run(tmp_path / "changing.py", compile_instrumented(CHANGING_SOURCE, "net.py", "net.py", recorder))
    lines = CHANGING_SOURCE.split("\n")
    table = recorder.table()["net.py"].items()
    named = {(lines[span.line - 1].strip(), lines[span.line - 1][span.column : span.end_column]): seen.changed for span, seen in table}
    assert {key: how for key, how in named.items() if how} == {
        ("first = self.act(one)", "one"): "alone",
        ("fourth = self.act(four)", "four"): "returned",
        ("second = self.net(input=two)", "two"): "inside",
    }


def test_what_did_not_run_is_not_in_the_table(observed: dict[str, Observed]) -> None:
    assert "y * mask" not in observed


class _Spans(libcst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        self.spans: set[Span] = set()

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, libcst.BaseExpression):
            place = self.get_metadata(PositionProvider, node)
            self.spans.add(Span(place.start.line, place.start.column, place.end.line, place.end.column))
        return True


@pytest.mark.parametrize("name", SNIPPETS)
def test_spans_are_those_of_libcst(name: str, recorder: Recorder) -> None:
    source = dedent(SNIPPETS[name]).lstrip()
    compile_instrumented(source, "snippet.py", "snippet.py", recorder)
    visitor = _Spans()
    MetadataWrapper(libcst.parse_module(source)).visit(visitor)
    assert recorder.entries
    assert {entry.span for entry in recorder.entries} <= visitor.spans


@pytest.fixture
def hooked(tmp_path: Path, recorder: Recorder) -> Iterator[Path]:
    path = tmp_path / "hooked_file_under_test.py"
    finder = Finder({str(path.resolve()): "hooked.py"}, recorder)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(tmp_path))
    yield path
    sys.meta_path.remove(finder)
    sys.path.remove(str(tmp_path))
    sys.modules.pop(path.stem, None)


def test_the_import_hook_instruments_only_the_files_named(hooked: Path, recorder: Recorder) -> None:
    hooked.write_text("import other_file_under_test\ndef f(x): return x + 1\n")
    hooked.with_name("other_file_under_test.py").write_text("def g(x): return x\ng(1)\n")
    module = importlib.import_module(hooked.stem)
    sys.modules.pop("other_file_under_test")
    assert module.f(1) == 2
    assert module.__file__ == str(hooked)
    assert set(recorder.table()) == {"hooked.py"}
    assert recorder.table()["hooked.py"][Span(2, 17, 2, 22)] == Observed(("int",))


def test_a_proxy_that_refuses_everything_passes_through(recorder: Recorder) -> None:
    class Proxy:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("touched")

    proxy = Proxy()
    index = recorder.entry(Span(1, 0, 1, 1))
    assert recorder.observe(index, proxy) is proxy
    assert recorder.observe_attribute(index, object(), "missing") is not None
