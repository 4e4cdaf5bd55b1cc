"""Kernels that a repository defines itself, in Triton or as a compiled extension, and the plain
torch functions beside them.

No rule can rewrite a kernel. Most such repositories also have a function that computes the same
with plain torch, for tests or for machines without a GPU. It is found here by its name and
parameters; whether it computes the same is left to the verifier.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.types import Inventory

TRITON = frozenset({"triton.jit", "triton.autotune", "triton.heuristics", "triton.runtime.jit.jit"})
EXTENSIONS = frozenset({"torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"})
RANDOM = frozenset("rand randn randint rand4x randn4x randint4x philox".split())
"""Functions of Triton's language that draw random numbers."""
FUNCTION_BASES = ("torch.autograd.Function", "torch.autograd.function.Function")
REFERENCE_WORDS = frozenset("ref reference torch pytorch naive native eager plain slow fallback cpu python py vanilla golden".split())
"""Words that mark the name of a plain torch function beside a kernel."""
FILLER_WORDS = REFERENCE_WORDS | frozenset(
    "triton cuda gpu fused fast kernel kernels fn func function fwd forward impl op ext launch launcher".split()
)
"""Words of a function name that say how something is computed, not what."""


@dataclass(frozen=True)
class Launch:
    """A kernel launch. `text` names the kernel in messages; `differentiable` is false where torch's
    autograd does not see the launch.
    """

    text: str
    differentiable: bool


class Launches:
    """The launches of one file: qualified name of a function or `autograd.Function` → what it
    launches, directly or through others.
    """

    def __init__(self, repo: Repo, file: FileModel) -> None:
        self.repo, self.file = repo, file
        self.by_name: dict[str, Launch] = {}
        self.launching = (
            any(name.startswith(("triton", "torch.utils.cpp_extension")) for name in file.bindings.values()) or self._imports_kernels()
        )
        if self.launching:
            self._collect()

    def reference(self, name: str) -> str:
        """The name of the only plain torch function with the same parameters and subject as a
        kernel launcher; "" where it is not unique.
        """
        node = self.file.functions.get(name) or _forward(self.file.classes.get(name))
        if node is None:
            return ""
        skipped = 1 if name in self.file.classes else 0
        signature = parameters(node)[skipped:]
        matching = [other for other in self._plain() if parameters(self._function(other)) == signature]
        namesakes = [other for other in matching if stem(other) == stem(name)]
        # A name such as `swiglu_ref` is the better evidence; a bare namesake counts only where it
        # is alone.
        marked = [other for other in namesakes if REFERENCE_WORDS & set(words(other))]
        return next((group[0] for group in (marked, namesakes) if len(group) == 1), "")

    def _collect(self) -> None:
        bodies = {
            name: function for name, function in self.file.functions.items() if "." not in name and not is_kernel(function, self.file)
        }
        for name, model in self.file.classes.items():
            if set(self.repo.bases(model)) & set(FUNCTION_BASES) and (forward := _forward(model)):
                bodies[name] = forward
        launches = {name: self._direct(body) for name, body in bodies.items()}
        # Level by level: a function launches what the functions found so far launch.
        while more := {name: launch for name, launch in launches.items() if launch and name not in self.by_name}:
            # An `autograd.Function` brings its own backward pass.
            self.by_name |= {name: Launch(launch.text, launch.differentiable or name in self.file.classes) for name, launch in more.items()}
            launches = {name: self._through(body) for name, body in bodies.items() if name not in self.by_name}

    def launchers(self) -> Iterator[tuple[str, int]]:
        """(qualified name, number of leading parameters to skip) of each function or `forward` that
        launches a kernel.
        """
        for name, function in self.file.functions.items():
            owner, _, last = name.rpartition(".")
            model = self.file.classes.get(owner)
            own = model is not None and last == "forward" and bool(set(self.repo.bases(model)) & set(FUNCTION_BASES))
            # A method of a module is exercised with its module.
            if (owner and not own) or is_kernel(function, self.file):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and self.launched(node.func)]
            # Triton's generator has no counterpart in JAX, so that the numbers could not be
            # compared.
            if calls and not any(self._draws(call.func) for call in calls):
                yield name, int(own)

    def _draws(self, function: ast.expr) -> bool:
        """Whether any kernel of the file that defines this one draws random numbers."""
        definition = self.repo.resolve(dotted_name(function.value, self.file)) if isinstance(function, ast.Subscript) else None
        kernels = [candidate for candidate in definition[0].functions.values() if is_kernel(candidate, definition[0])] if definition else []
        return any(isinstance(node, ast.Attribute) and node.attr in RANDOM for kernel in kernels for node in ast.walk(kernel))

    def launched(self, function: ast.expr) -> str:
        """What a call of this expression launches, as text for people; "" where it launches nothing."""
        if not self.launching:
            return ""
        if isinstance(function, ast.Subscript) and self._kernel(function.value):
            return f"the Triton kernel `{ast.unparse(function.value)}`"
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in self._extensions:
            return f"`{ast.unparse(function)}` of a compiled extension"
        return ""

    def _direct(self, function: FunctionNode) -> Launch | None:
        """The launch that the function makes for any arguments."""
        for call in _calls(function.body):
            if text := self.launched(call.func):
                return Launch(text, not isinstance(call.func, ast.Subscript))
        return None

    def _through(self, function: FunctionNode) -> Launch | None:
        """The launch that a function makes by a call of another function of this file."""
        for call in _calls(function.body):
            if isinstance(call.func, ast.Name) and call.func.id in self.by_name:
                return self.by_name[call.func.id]
            if isinstance(call.func, ast.Attribute) and call.func.attr == "apply" and ast.unparse(call.func.value) in self.by_name:
                return self.by_name[ast.unparse(call.func.value)]
        return None

    def _kernel(self, node: ast.expr) -> bool:
        definition = self.repo.resolve(dotted_name(node, self.file))
        function = definition[0].functions.get(definition[1]) if definition else None
        return function is not None and definition is not None and is_kernel(function, definition[0])

    @cached_property
    def _extensions(self) -> set[str]:
        """Names that hold an extension compiled by torch."""
        assigned = [statement for statement in self.file.tree.body if isinstance(statement, ast.Assign)]
        loaded = [s for s in assigned if isinstance(s.value, ast.Call) and dotted_name(s.value.func, self.file) in EXTENSIONS]
        return {target.id for statement in loaded for target in statement.targets if isinstance(target, ast.Name)}

    def loads(self, function: ast.expr, line: int) -> bool:
        """Whether a call on this line loads an extension that is only used for calls, and only in
        this file.
        """
        if dotted_name(function, self.file) not in EXTENSIONS:
            return False
        targets = [s.targets for s in self.file.tree.body if isinstance(s, ast.Assign) and s.lineno <= line <= (s.end_lineno or s.lineno)]
        names = {target.id for group in targets for target in group if isinstance(target, ast.Name)} & self._extensions
        nodes = list(ast.walk(self.file.tree))
        reads = [node for node in nodes if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)]
        calls = [node for node in nodes if isinstance(node, ast.Call) and self.launched(node.func)]
        elsewhere = {f"{self.file.file.module}.{name}" for name in names}
        imported = any(elsewhere & set(other.bindings.values()) for other in self.repo.files.values() if other is not self.file)
        called = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.value in reads]
        # Any other use of the extension would be left without a meaning once the load is dropped.
        return bool(names) and not imported and len(called) == len(reads)

    def _imports_kernels(self) -> bool:
        return any(
            (definition := self.repo.resolve(dotted))
            and (function := definition[0].functions.get(definition[1]))
            and is_kernel(function, definition[0])
            for dotted in self.file.bindings.values()
        )

    def _plain(self) -> Iterator[str]:
        """Names of functions without a launch: those of this file, and those it imports from the
        repository.
        """
        for name, function in self.file.functions.items():
            if "." not in name and name not in self.by_name and not is_kernel(function, self.file):
                yield name
        for name, dotted in self.file.bindings.items():
            definition = self.repo.resolve(dotted)
            if (
                definition
                and definition[1] in definition[0].functions
                and definition[0] is not self.file
                and not is_kernel(definition[0].functions[definition[1]], definition[0])
            ):
                yield name

    def _function(self, name: str) -> FunctionNode:
        if name in self.file.functions:
            return self.file.functions[name]
        definition = self.repo.resolve(self.file.bindings[name])
        assert definition is not None
        return definition[0].functions[definition[1]]


def launching(inventory: Inventory) -> dict[str, dict[str, int]]:
    """File → qualified name of a launching function → number of parameters before the kernel's
    arguments (1 for `ctx`).

    Methods of modules are left out, since they run with their module; backward passes, since their
    arguments lie in `ctx`; and kernels that draw random numbers, since their results cannot be
    compared.
    """
    texts = {file.path: (inventory.root / file.path).read_text(encoding="utf-8-sig", errors="replace") for file in inventory.files}
    # Parsing a repository takes seconds; most have no kernels.
    if not any("triton" in text or "cpp_extension" in text for text in texts.values()):
        return {}
    repo = Repo(inventory)
    by_file = {path: dict(Launches(repo, file).launchers()) for path, file in repo.files.items()}
    return {path: names for path, names in by_file.items() if names}


def is_kernel(function: FunctionNode, file: FileModel) -> bool:
    """Whether a function is written in Triton's language."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(dotted_name(decorator, file) in TRITON for decorator in decorators)


def words(name: str) -> list[str]:
    """`_FusedSwiGLU_torch2` → `fused swi glu torch2`."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+", name)]


def stem(name: str) -> str:
    """What a name says that is computed: `_swiglu_fwd`, `SwiGLUFunction` and `swiglu_reference` are
    all `swiglu`.
    """
    return "".join(word for word in words(name) if word not in FILLER_WORDS)


def _forward(model: ClassModel | None) -> FunctionNode | None:
    return model.methods.get("forward") if model else None


def parameters(function: FunctionNode) -> list[str]:
    """Names, in order."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """The calls that run for any arguments: those below no `if`, `try`, `while` or inner definition."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.For)):
            yield from _calls(statement.body)
        # Code below a condition may be the plain torch path of a function that can also launch.
        elif not isinstance(statement, (ast.If, ast.Try, ast.While, ast.FunctionDef, ast.ClassDef)):
            yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))
