"""Rewrites what a script does outside of its compiled step, and puts the step in place of the statements that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, is_optimizer
from migrate_agent.tools.programs.rewrite.functions import Step, call_statement, loss_function, step_function
from migrate_agent.tools.programs.rewrite.names import Imports, code, read
from migrate_agent.tools.programs.rewrite.optimizers import transform

DRAWS = frozenset({"torch.randn", "torch.rand", "torch.randint", "torch.randperm"})
NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
SEEDS = frozenset({"torch.manual_seed", "torch.random.manual_seed"})
IDLE = frozenset(
    {
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.cuda.empty_cache",
        "torch.cuda.synchronize",
        "torch.set_float32_matmul_precision",
        "torch.use_deterministic_algorithms",
        "torch.set_num_threads",
        "torch.autograd.set_detect_anomaly",
    }
)
"""Calls without an effect on what is computed, and without a counterpart."""
IDLE_PREFIX = "torch.backends."
GENERATOR = "default_generator"


class RewriteHost(cst.CSTTransformer):
    """One pass over a script. `origin` says of each new node that stands for an old one which that was.

    `traced` are the functions of the script that the loss is computed by: they stay as they are, for the rules of modules.
    """

    def __init__(
        self, imports: Imports, core: Core, step: Step, inside: tuple[cst.CSTNode, ...], traced: frozenset[str], inject: bool
    ) -> None:
        super().__init__()
        self.imports, self.core, self.step, self.traced, self.inject = imports, core, step, traced, inject
        self.inside = inside
        self.origin: dict[cst.CSTNode, cst.CSTNode] = {}
        self.helpers: set[str] = set()
        self.result_of: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._kept = 0
        self._functions: list[str] = []
        self._seeded: set[tuple[str, ...]] = set()
        self.nested: list[cst.BaseStatement] = []

    # -- walking ------------------------------------------------------------------------------------------------------
    def on_visit(self, node: cst.CSTNode) -> bool:
        """Count how deep the walk is in code that is traced."""
        if self._stays(node):
            self._kept += 1
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node.name.value)
        return super().on_visit(node) and not isinstance(node, (cst.Import, cst.ImportFrom))

    def _stays(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.ClassDef) or node in self.core.slice or node is self.core.loss:
            return True
        return isinstance(node, cst.FunctionDef) and node.name.value in self.traced

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one, and what each statement became."""
        kept = self._kept > 0
        if self._stays(original_node):
            self._kept -= 1
        if isinstance(original_node, cst.FunctionDef):
            self._functions.pop()
        result = updated_node if kept else super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode):
            self.origin[result] = original_node
        if isinstance(original_node, cst.BaseStatement):
            self.result_of[original_node] = _statements(result)
        if original_node is self.core.loss:
            assert isinstance(result, cst.BaseExpression)
            self.loss = result
        return result

    # -- the step -----------------------------------------------------------------------------------------------------
    def _block(self, original: Any, updated: Any) -> Any:
        if original is self.core.block:
            updated = updated.with_changes(body=self._new_body(original))
        if len(self.inside) and any(statement is self.inside[0] for statement in original.body) and isinstance(original, cst.Module):
            updated = updated.with_changes(body=self._with_functions(original, updated))
        return updated

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        """Put the step into its loop; an emptied block gets a `pass`."""
        result = self._block(original_node, updated_node)
        return result if result.body else result.with_changes(body=[cst.parse_statement("pass")])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> Any:
        """Put the functions of the step before the statement that they are called from."""
        return self._block(original_node, updated_node)

    def _new_body(self, original: Any) -> list[cst.BaseStatement]:
        core = self.core
        call = call_statement(self.step, "train_step")
        first = core.slice[0] if core.slice else core.backward
        lines: list[cst.BaseStatement] = []
        gone = {*core.slice, core.backward, core.step, *core.clips, *core.zeros, *core.after, *core.before}
        for statement in original.body:
            if statement is first:
                lines += [one for s in core.before for one in self.result_of[s]]
                lines.append(call.with_changes(leading_lines=getattr(first, "leading_lines", ())))
                lines += [one for s in core.after for one in self.result_of[s]]
            elif statement not in gone:
                lines += self.result_of[statement]
        return lines

    def functions(self) -> list[cst.BaseStatement]:
        """`loss_fn` and `train_step`."""
        statements = [one.with_changes(leading_lines=()) for s in self.core.slice for one in self.result_of[s]]
        loss = loss_function(self.core, self.step, statements, self.loss, "loss_fn")
        if self.core.clips:
            self.helpers.add("clip_grad_norm")
        blank = [cst.EmptyLine(indent=False)] * 2
        return [
            loss.with_changes(leading_lines=blank),
            step_function(self.core, self.step, "loss_fn", "train_step").with_changes(leading_lines=blank),
        ]

    def _with_functions(self, original: cst.Module, updated: cst.Module) -> list[cst.BaseStatement]:
        lines: list[cst.BaseStatement] = []
        for statement in original.body:
            if statement is self.inside[0]:
                lines += self.functions()
            lines += self.result_of[statement]
        return lines

    # -- statements ---------------------------------------------------------------------------------------------------
    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """Seeds, settings of torch, and the construction of optimizers."""
        if len(original_node.body) != 1:
            return updated_node
        small = original_node.body[0]
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._call_line(small.value, updated_node)
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call) and is_optimizer(self.imports.of(small.value.func)):
            return self._optimizer(small.value, updated_node)
        if isinstance(small, cst.Assign) and self.imports.of(small.targets[0].target).startswith(IDLE_PREFIX):
            return cst.RemoveFromParent()
        return updated_node

    def _call_line(self, call: cst.Call, updated: cst.SimpleStatementLine) -> Any:
        dotted = self.imports.of(call.func)
        if dotted in SEEDS:
            self.helpers.add(GENERATOR)
            seed = code(call.args[0].value)
            return cst.parse_statement(f"{GENERATOR}.manual_seed({seed})").with_changes(leading_lines=updated.leading_lines)
        if dotted in IDLE:
            return cst.RemoveFromParent()
        return updated

    def _optimizer(self, call: cst.Call, updated: cst.SimpleStatementLine) -> Any:
        if not call.args or code(call.args[0].value) != f"{self.step.model}.parameters()":
            raise NotUnderstoodError("an optimizer over other parameters than those of one module has no rule", call)
        text = f"nnx.Optimizer({self.step.model}, {transform(self.imports.of(call.func), call, self.inject)}, wrt=nnx.Param)"
        small = updated.body[0]
        assert isinstance(small, cst.Assign)
        return updated.with_changes(body=[small.with_changes(value=cst.parse_expression(text))])

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`with torch.no_grad():` goes, and what stands in it stays: no gradient is taken outside of the step."""
        items = [item.item for item in original_node.items]
        if not all(isinstance(item, cst.Call) and self.imports.of(item.func) in NO_GRADIENT for item in items):
            return updated_node
        lines = list(updated_node.body.body)
        if lines and hasattr(lines[0], "leading_lines"):
            lines[0] = lines[0].with_changes(leading_lines=[*updated_node.leading_lines, *lines[0].leading_lines])
        return cst.FlattenSentinel(lines)

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> Any:
        """`@torch.no_grad()` goes."""
        decorator = original_node.decorator
        function = decorator.func if isinstance(decorator, cst.Call) else decorator
        return cst.RemoveFromParent() if self.imports.of(function) in NO_GRADIENT else updated_node

    # -- expressions --------------------------------------------------------------------------------------------------
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Draws come from a generator with torch's stream."""
        dotted = self.imports.of(original_node.func)
        if dotted == "torch.Generator":
            self.helpers.add("TorchGenerator")
            return updated_node.with_changes(func=cst.Name("TorchGenerator"), args=[])
        if dotted not in DRAWS:
            return updated_node
        named = {a.keyword.value: a.value for a in updated_node.args if a.keyword is not None}
        generator = named.get("generator", cst.Name(GENERATOR))
        if not isinstance(generator, cst.Name) or generator.value == GENERATOR:
            self.helpers.add(GENERATOR)
        kept = [
            a
            for a in updated_node.args
            if a.keyword is None or a.keyword.value not in ("generator", "device", "requires_grad", "pin_memory")
        ]
        if any(a.keyword is not None and a.keyword.value not in ("size", "low", "high") for a in kept):
            raise NotUnderstoodError(f"{dotted} with options has no rule outside of the step", original_node)
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(func=cst.Attribute(generator, cst.Name(dotted.rpartition(".")[2])), args=kept)


def _statements(result: Any) -> list[cst.BaseStatement]:
    if isinstance(result, cst.FlattenSentinel):
        return [node for node in result if isinstance(node, cst.BaseStatement)]
    return [result] if isinstance(result, cst.BaseStatement) else []


def traced_functions(module: cst.Module, core: Core) -> frozenset[str]:
    """The functions of the script that the loss is computed by, one calling the other."""
    functions: Mapping[str, cst.FunctionDef] = {s.name.value: s for s in module.body if isinstance(s, cst.FunctionDef)}
    todo = [name for statement in [*core.slice, core.loss] for name in read(statement)]
    names: set[str] = set()
    while todo:
        name = todo.pop()
        if name in functions and name not in names:
            names.add(name)
            todo += read(functions[name])
    return frozenset(names)
