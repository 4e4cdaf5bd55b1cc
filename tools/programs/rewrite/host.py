"""Rewrites what a script does outside of its compiled step, and puts the step in place of the statements that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, is_optimizer
from migrate_agent.tools.programs.rewrite.functions import (
    Step,
    accumulate_function,
    accumulated_calls,
    apply_function,
    call_statement,
    loss_function,
    step_function,
)
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall, SchedulerCall, rate_of
from migrate_agent.tools.programs.rewrite.names import Imports, code, read
from migrate_agent.tools.programs.rewrite.optimizers import scheduler_text, transform
from migrate_agent.tools.rewrite.tables.helpers import symbols

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
CHECKPOINTS = {"torch.save": "save_checkpoint", "torch.load": "load_checkpoint"}
STATES = {"state_dict": "object_state", "load_state_dict": "load_object_state"}
GENERATOR = "default_generator"


@dataclass(frozen=True)
class Optimizers:
    """The optimizers and schedulers of a script, by name, and the calls that construct optimizers."""

    calls: Mapping[str, OptimizerCall]
    schedulers: Mapping[str, SchedulerCall]
    constructions: Mapping[str, cst.Call]


class RewriteHost(cst.CSTTransformer):
    """One pass over a script. `origin` says of each new node that stands for an old one which that was.

    `traced` are the functions of the script that the loss is computed by: they stay as they are, for the rules of modules.
    """

    def __init__(
        self,
        imports: Imports,
        core: Core,
        step: Step,
        traced: frozenset[str],
        forwards: frozenset[cst.CSTNode],
        optimizers: Optimizers,
    ) -> None:
        super().__init__()
        self.imports, self.core, self.step, self.traced = imports, core, step, traced
        self.forwards, self.optimizers = forwards, optimizers
        inner = [one for one in optimizers.schedulers.values() if one.inner is not None]
        self.idle = {statement for one in optimizers.calls.values() for statement in one.statements}
        self.idle |= {statement for one in inner for statement in (one.statement, one.inner) if statement is not None}
        self.evaluates: list[cst.Call] = []
        self.origin: dict[cst.CSTNode, cst.CSTNode] = {}
        self.helpers: set[str] = set()
        self.result_of: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._kept = 0

    # -- walking ------------------------------------------------------------------------------------------------------
    def on_visit(self, node: cst.CSTNode) -> bool:
        """Count how deep the walk is in code that is traced."""
        if self._stays(node):
            self._kept += 1
        return super().on_visit(node) and not isinstance(node, (cst.Import, cst.ImportFrom))

    def _stays(self, node: cst.CSTNode) -> bool:
        if node in self.core.slice or node is self.core.loss:
            return True
        if isinstance(node, cst.ClassDef):
            return not any(self._data_helper(base.value) for base in node.bases)
        return isinstance(node, cst.FunctionDef) and node.name.value in self.traced

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one, and what each statement became."""
        kept = self._kept > 0
        if self._stays(original_node):
            self._kept -= 1
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
        if any(statement is self.step.anchor for statement in original.body):
            updated = updated.with_changes(body=self._with_functions(original))
        if self.core.accumulates and any(statement is self.step.loop for statement in original.body):
            updated = updated.with_changes(body=self._with_zeros(list(updated.body)))
        if isinstance(original, cst.Module) and self.evaluates:
            updated = updated.with_changes(body=self._with_evaluation(list(updated.body)))
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
        call = cst.parse_statement(accumulated_calls(self.step)[0]) if core.accumulates else call_statement(self.step, "train_step")
        first = core.slice[0] if core.slice else core.backward
        lines: list[cst.BaseStatement] = []
        gone = {*core.slice, core.backward, *core.after, *core.before}
        gone |= set() if core.accumulates else {core.step, *core.clips, *core.zeros}
        for statement in original.body:
            if statement is first:
                lines += [one for s in core.before for one in self.result_of[s]]
                lines.append(call.with_changes(leading_lines=getattr(first, "leading_lines", ())))
                lines += [one for s in core.after for one in self.result_of[s]]
            elif statement not in gone:
                lines += self.result_of[statement]
        return lines

    def functions(self) -> list[Any]:
        """`loss_fn` and `train_step`."""
        statements: list[Any] = [one for s in self.core.slice for one in self.result_of[s]]
        # What stands above the first of them stays in the loop, above the call.
        statements[:1] = [one.with_changes(leading_lines=()) for one in statements[:1]]
        loss = loss_function(self.core, self.step, statements, self.loss, "loss_fn")
        if self.core.clips:
            self.helpers.add("clip_grad_norm")
        if self.core.accumulates:
            return [loss, accumulate_function(self.step, "loss_fn"), apply_function(self.core, self.step)]
        return [loss, step_function(self.core, self.step, "loss_fn", "train_step")]

    def _with_functions(self, original: Any) -> list[cst.BaseStatement]:
        lines: list[cst.BaseStatement] = []
        blank = [cst.EmptyLine(indent=False)] * (2 if isinstance(original, cst.Module) else 1)
        for statement in original.body:
            if statement is self.step.anchor:
                lines += [function.with_changes(leading_lines=blank) for function in self.functions()]
            lines += self.result_of[statement]
        return lines

    def _with_zeros(self, lines: list[Any]) -> list[Any]:
        """Gradients begin as zeros before the loop, where no statement there says so."""
        place = next((i for i, line in enumerate(lines) if self.origin.get(line) is self.step.loop), None)
        zero = accumulated_calls(self.step)[2]
        if place is None or any(code(line).strip() == zero for line in lines[:place]):
            return lines
        self.helpers.add("zero_gradients")
        return [*lines[:place], cst.parse_statement(zero), *lines[place:]]

    def _with_evaluation(self, lines: list[Any]) -> list[Any]:
        """`eval_step` before the first function or statement that calls it."""
        call = self.evaluates[0]
        count = max(len(one.args) for one in self.evaluates)
        names = [argument.value.value if isinstance(argument.value, cst.Name) else f"x{i}" for i, argument in enumerate(call.args)]
        if (
            any(len(one.args) != count or any(a.keyword is not None for a in one.args) for one in self.evaluates)
            or len(set(names)) != count
        ):
            names = ["*args"]
        parameters = ", ".join(names)
        text = f"@nnx.jit\ndef eval_step(model, {parameters}):\n    return model({parameters})\n"
        first = next(i for i, line in enumerate(lines) if "eval_step(" in code(line))
        blank = [cst.EmptyLine(indent=False)] * 2
        function: Any = cst.parse_statement(text)
        return [*lines[:first], function.with_changes(leading_lines=blank), *lines[first:]]

    # -- statements ---------------------------------------------------------------------------------------------------
    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """Seeds, settings of torch, and the construction of optimizers."""
        if original_node in self.idle:
            return cst.RemoveFromParent()
        if self.core.accumulates and original_node in (self.core.step, *self.core.zeros, *self.core.clips):
            return self._accumulated(original_node, updated_node)
        if len(original_node.body) != 1:
            return updated_node
        small = original_node.body[0]
        if isinstance(small, cst.ImportFrom):
            return self._import(small, updated_node)
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._call_line(small.value, updated_node)
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call) and is_optimizer(self.imports.of(small.value.func)):
            return self._optimizer(code(small.targets[0].target), small.value, updated_node)
        if isinstance(small, cst.Assign) and (scheduler := self._scheduler(original_node)) is not None:
            made = scheduler_text(scheduler, self.optimizers.constructions[scheduler.optimizer])
            self.helpers |= made.helpers
            return updated_node.with_changes(body=[small.with_changes(value=cst.parse_expression(made.code))])
        if isinstance(small, cst.Assign) and self.imports.of(small.targets[0].target).startswith(IDLE_PREFIX):
            return cst.RemoveFromParent()
        return updated_node

    def _scheduler(self, statement: cst.CSTNode) -> SchedulerCall | None:
        return next((one for one in self.optimizers.schedulers.values() if one.statement is statement), None)

    def _accumulated(self, original: cst.CSTNode, updated: cst.SimpleStatementLine) -> Any:
        """The update, and gradients set to zero, where gradients add up."""
        if original in self.core.clips:
            return cst.RemoveFromParent()
        _, update, zero = accumulated_calls(self.step)
        self.helpers |= set() if original is self.core.step else {"zero_gradients"}
        line: Any = cst.parse_statement(update if original is self.core.step else zero)
        return line.with_changes(leading_lines=updated.leading_lines)

    def _import(self, statement: cst.ImportFrom, updated: cst.SimpleStatementLine) -> Any:
        """An import of `torch.utils.data` goes, as far as helpers stand for its names."""
        if (
            statement.module is None
            or not code(statement.module).startswith("torch.utils.data")
            or isinstance(statement.names, cst.ImportStar)
        ):
            return updated
        left = [alias for alias in statement.names if code(alias.name) not in symbols()]
        if not left:
            return cst.RemoveFromParent()
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(body=[statement.with_changes(names=left)])

    def _call_line(self, call: cst.Call, updated: cst.SimpleStatementLine) -> Any:
        dotted = self.imports.of(call.func)
        if dotted in SEEDS:
            self.helpers.add(GENERATOR)
            seed = code(call.args[0].value)
            return cst.parse_statement(f"{GENERATOR}.manual_seed({seed})").with_changes(leading_lines=updated.leading_lines)
        if dotted in IDLE:
            return cst.RemoveFromParent()
        return updated

    def _optimizer(self, name: str, call: cst.Call, updated: cst.SimpleStatementLine) -> Any:
        optimizer = self.optimizers.calls.get(name)
        if optimizer is None or optimizer.model != self.step.model:
            raise NotUnderstoodError("an optimizer over other parameters than those of one module has no rule", call)
        own = [one for one in self.optimizers.schedulers.values() if one.optimizer == name]
        if len(own) > 1:
            raise NotUnderstoodError("several schedulers of one optimizer have no rule", call)
        inner = next((one for one in own if one.inner is not None), None)
        made = transform(self.imports.of(call.func), call, optimizer, inner)
        self.helpers |= made.helpers
        text = f"nnx.Optimizer({self.step.model}, {made.code}, wrt=nnx.Param)"
        small = updated.body[0]
        assert isinstance(small, cst.Assign)
        # What the source says above the groups, which go, is about the optimizer.
        above = [line for one in reversed(optimizer.statements) for line in getattr(one, "leading_lines", ())]
        updated = updated.with_changes(leading_lines=[*sorted(above, key=lambda line: line.comment is not None), *updated.leading_lines])
        return updated.with_changes(body=[small.with_changes(value=cst.parse_expression(text))])

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """`for group in optimizer.param_groups: group["lr"] = rate` → the rate is set in the optimizer's state."""
        rate = rate_of(original_node, self.optimizers.calls)
        if rate is None:
            return updated_node
        self.helpers.add("set_hyperparameter")
        optimizer, value = rate
        return cst.parse_statement(f"set_hyperparameter({optimizer}, {code(value)})").with_changes(leading_lines=updated_node.leading_lines)

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

    def _state(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`model.state_dict()` and `model.load_state_dict(state)`, of a module or an optimizer."""
        function = original.func
        if not isinstance(function, cst.Attribute) or function.attr.value not in STATES or not isinstance(function.value, cst.Name):
            return None
        if function.value.value not in {*self.core.models, *self.optimizers.calls}:
            return None
        helper = STATES[function.attr.value]
        self.helpers.add(helper)
        return cst.Call(cst.Name(helper), [cst.Arg(function.value), *_positional(updated.args[:1])])

    def _data_helper(self, node: cst.CSTNode) -> str:
        """The helper that stands for a name of `torch.utils.data`, or ""."""
        dotted = self.imports.of(node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        name = dotted.rpartition(".")[2]
        return name if dotted.startswith("torch.utils.data.") and name in symbols() else ""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """`Dataset`, `DataLoader` and their kin."""
        return self._named(original_node, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`torch.utils.data.DataLoader` and its kin."""
        return self._named(original_node, updated_node)

    def _named(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        name = self._data_helper(original)
        if not name:
            return updated
        self.helpers.add(name)
        return cst.Name(name)

    # -- expressions --------------------------------------------------------------------------------------------------
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Draws come from a generator with torch's stream."""
        dotted = self.imports.of(original_node.func)
        if original_node in self.forwards:
            self.evaluates.append(original_node)
            return cst.Call(cst.Name("eval_step"), [cst.Arg(updated_node.func), *updated_node.args])
        if (name := CHECKPOINTS.get(dotted)) is not None:
            self.helpers.add(name)
            kept = [a for a in updated_node.args if a.keyword is None or a.keyword.value in ("obj", "f")]
            return updated_node.with_changes(func=cst.Name(name), args=_positional(kept))
        if (state := self._state(original_node, updated_node)) is not None:
            return state
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


def _positional(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [cst.Arg(argument.value) for argument in arguments]


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
