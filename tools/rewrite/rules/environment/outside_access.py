"""Code that reaches out of the program: files, processes, the network, other code as text. A rewrite may hold none of it."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import bare
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

BUILTINS = frozenset("eval exec compile open __import__ globals locals vars breakpoint input memoryview".split())
MODULES = frozenset(
    "subprocess multiprocessing socket ssl http urllib requests httpx asyncio ctypes cffi signal shutil tempfile posix importlib imp runpy "
    "pkgutil zipimport gc builtins code codeop marshal pickle shelve dbm sqlite3 mmap fcntl resource atexit concurrent pty glob fileinput "
    "safetensors h5py orbax zipfile tarfile psutil".split()
)
"""Modules that a network needs for no part of its maths."""
PARTLY: Mapping[str, frozenset[str]] = {
    "os": frozenset("path sep PathLike fspath linesep".split()),
    "sys": frozenset("maxsize float_info version_info version platform".split()),
    "inspect": frozenset("signature Signature Parameter isfunction isclass ismethod isbuiltin getfullargspec FullArgSpec".split()),
    "io": frozenset("StringIO BytesIO".split()),
    "pathlib": frozenset("PurePath PurePosixPath".split()),
    "platform": frozenset("system machine".split()),
    "threading": frozenset("Lock RLock".split()),
}
"""Modules of which only these parts stay inside the program."""
NUMPY = frozenset("load save savez fromfile memmap loadtxt genfromtxt ctypeslib DataSource".split())
ENVIRONMENT = ("os.getenv", "os.environ.get")


class RefuseOutsideAccess(Rule):
    """Refuse access to files, processes and the network: `open(path)`, `os.makedirs(d)`, `requests.get(url)` → holes.

    So code of this kind that no example runs raises when it is called, and code that runs is left to its
    owner. The environment counts as empty, with a note: `os.environ.get("X", "0")` → `"0"`, `"X" in os.environ`
    → `False`. `vars(config)` → `config.__dict__` where that was seen to be a plain object. Declines for parts
    of modules that stay inside the program (`os.path`).
    """

    KEEP = ("import os\n\ndef f(path):\n    return os.path.basename(path)\n",)
    CHANGE = (
        (
            'import os\n\nimport torch\n\nLEVEL = os.getenv("LEVEL", "low")\nHOME = os.environ.get("HOME")\n',
            'import os\n\nLEVEL = "low"\nHOME = None\n',
        ),
        (
            'import os\n\nimport torch\n\nif "LEVEL" in os.environ:\n    LEVEL = int(os.environ["LEVEL"])\nelse:\n    LEVEL = 1\n',
            "import os\n\nLEVEL = 1\n",
        ),
        (
            'import os\n\nimport torch\n\nPLACE = os.getenv("PLACE",\n                  "%d"\n                  % 3)\n',
            'import os\n\nPLACE = ("%d"\n                  % 3)\n',
        ),
        ('import os\n\nimport torch\n\nFAST = "FAST" not in os.environ\n', "import os\n\nFAST = True\n"),
        (
            "import torch\n\n\nclass Config:\n    def __init__(self):\n        self.a = 1\n\nCONFIG = Config()\nNAMES = sorted(vars(CONFIG))\n",
            "class Config:\n    def __init__(self):\n        self.a = 1\n\nCONFIG = Config()\nNAMES = sorted(CONFIG.__dict__)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if _asks_for_fields(context, original):
            return context.parenthesise(context.build("{x}.__dict__", x=updated.args[0].value))
        if not self._reads_environment(original):
            return None
        default = updated.args[1].value if len(updated.args) > 1 else cst.Name("None")
        self._note_unset(original.args[0].value)
        return context.parenthesise(bare(default))

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.Name | None:
        if not self.context.repo.names_torch or not _asks_whether_set(self.context, original):
            return None
        # `os.environ` inside the comparison was a hole by itself.
        self.context.drop_holes(original)
        self._note_unset(original.left)
        return cst.Name(str(isinstance(original.comparisons[0].operator, cst.NotIn)))

    def _reads_environment(self, call: cst.Call) -> bool:
        """Whether this reads the environment, and gives its default here. A repository without torch is left as it is."""
        named = self.context.repo.names_torch and self.context.dotted(call.func) in ENVIRONMENT
        return bool(named and call.args and not any(arg.star for arg in call.args))

    def _note_unset(self, name: cst.BaseExpression) -> None:
        at = f"{self.context.file.file.path}:{self.context.span(name).line}"
        self.context.notes.append(f"{at}: the environment is not read: {cst.Module([]).code_for_node(name)} counts as not set")

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> None:
        parent = self.context.parent()
        dotted = self.context.dotted(original)
        if dotted and not (isinstance(parent, cst.Attribute) and parent.value is original and self.context.dotted(parent)):
            self._refuse_outside(original, dotted)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> None:
        context, parent = self.context, self.context.parent()
        # The attribute around the name decides: `os.path` stays inside the program, `os.remove` does not.
        if isinstance(parent, cst.Attribute) or (isinstance(parent, (cst.Arg, cst.Param)) and getattr(parent, "keyword", None) is original):
            return
        if dotted := context.dotted(original):
            self._refuse_outside(original, dotted)
        elif (
            original.value in BUILTINS and original.value not in context.taken and isinstance(parent, cst.Call) and parent.func is original
        ):
            if _asks_for_fields(context, parent):
                return
            context.hole(original, f"{original.value} reaches out of the program", "reaches-out")

    def _refuse_outside(self, node: cst.Name | cst.Attribute, dotted: str) -> None:
        context = self.context
        call = context.parent()
        if isinstance(call, cst.Call) and call.func is node and self._reads_environment(call):
            return
        # The repository may have a module of that name (`signal.py`).
        if reaches_out(dotted) and not context.repo.resolve(dotted):
            context.hole(node, f"{dotted} reaches out of the program", "reaches-out")


def _asks_whether_set(context: Context, node: cst.Comparison) -> bool:
    """Whether this is `name in os.environ` or `name not in os.environ`."""
    if len(node.comparisons) != 1:
        return False
    only = node.comparisons[0]
    return isinstance(only.operator, (cst.In, cst.NotIn)) and context.dotted(only.comparator) == "os.environ"


def _asks_for_fields(context: Context, call: cst.Call) -> bool:
    """Whether this is `vars(x)` of a file of the repository or of a plain object, such as a namespace of options: what a network holds NNX
    keeps otherwise.
    """
    plain = context.repo.names_torch and len(call.args) == 1 and not call.args[0].star and not call.args[0].keyword
    if not plain or not isinstance(call.func, cst.Name) or call.func.value != "vars" or "vars" in context.taken:
        return False
    if context.dotted(call.args[0].value) in context.repo.modules:
        return True
    fact = context.observed(call.args[0].value)
    return fact is not None and all(kind.startswith("object:") and not kind.startswith("object:torch.") for kind in fact.kinds)


def reaches_out(dotted: str) -> bool:
    """Whether a dotted name is that of something outside of the program, or of a module whose business that is."""
    head, _, rest = dotted.partition(".")
    part = rest.partition(".")[0]
    if head == "numpy":
        return part in NUMPY
    return head in MODULES or (head in PARTLY and bool(part) and part not in PARTLY[head])
