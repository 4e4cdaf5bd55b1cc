"""Rewrites what a script does outside of its compiled step, and puts the step in place of the statements that it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.checkpoint_paths import asks_existence, checkpoint_paths, takes_folder
from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, blocks, body, is_optimizer
from migrate_agent.tools.programs.rewrite.functions import (
    Step,
    accumulate_function,
    accumulated_calls,
    apply_function,
    call_statement,
    clip_helpers,
    closure_calls,
    closure_function,
    loss_function,
    step_function,
)
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall, SchedulerCall, first_rate, rate_of
from migrate_agent.tools.programs.rewrite.names import Imports, bound, code, name_of, read
from migrate_agent.tools.programs.rewrite.optimizers import scheduler_text, transform
from migrate_agent.tools.programs.rewrite.parameter_loops import parameter_loop, update_statement
from migrate_agent.tools.programs.rewrite.passes.sample_rows import from_host, sampled_arrays
from migrate_agent.tools.programs.tables.registry import function_text, functions
from migrate_agent.tools.rewrite.tables.helpers import symbols
from migrate_agent.tools.rewrite.tables.registry import Refuse

DRAWS = frozenset({"torch.randn", "torch.rand", "torch.randint", "torch.randperm", "torch.normal"})
LIKE = {"torch.randn_like": "randn", "torch.rand_like": "rand"}
AVERAGES = "torch.optim.swa_utils."
NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
SAFE_GLOBALS = "torch.serialization.safe_globals"
"""What `torch.load` may construct; the rewrite's checkpoints hold arrays."""
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
        "torch.serialization.add_safe_globals",
    }
)
"""Calls without an effect on what is computed, and without a counterpart."""
IDLE_PREFIX = "torch.backends."
RANDOM_STATES = {
    "torch.get_rng_state": "get_state",
    "torch.random.get_rng_state": "get_state",
    "torch.set_rng_state": "set_state",
    "torch.random.set_rng_state": "set_state",
}
CHECKPOINTS = {"torch.save": "write_checkpoint", "torch.load": "read_checkpoint"}
HELPED = ("torch.utils.data.", "torch.optim.swa_utils.", "torchvision.transforms.", "torchvision.datasets.", "torchvision.utils.")
"""Names for which helpers stand that have the same name."""
GENERATOR = "default_generator"
STATES = {"state_dict": "object_state", "load_state_dict": "load_object_state"}
SAMPLES = {
    "Categorical": f"{GENERATOR}.categorical({{0}}.probs)",
    "Normal": f"({{0}}.loc + {{0}}.scale * {GENERATOR}.randn({{1}}*{{0}}.loc.shape))",
    "Uniform": f"({{0}}.low + ({{0}}.high - {{0}}.low) * {GENERATOR}.rand({{1}}*{{0}}.low.shape))",
    "MultivariateNormal": f"({{0}}.loc + ({{0}}.scale_tril @ {GENERATOR}.randn({{1}}*{{0}}.loc.shape)[..., None])[..., 0])",
}
"""Distribution → its sample by the generator with torch's stream: of the distribution, and of the shape in front of its own."""
BACKEND = "jax.default_backend()"
DOUBLE = "to_double"


@dataclass(frozen=True)
class Optimizers:
    """The optimizers and schedulers of a script, by name, and the calls that construct optimizers."""

    calls: Mapping[str, OptimizerCall]
    schedulers: Mapping[str, SchedulerCall]
    constructions: Mapping[str, cst.Call]


@dataclass(frozen=True)
class Training:
    """A training function (`None`: the statements of the file): its steps, and the optimizers that it sees."""

    function: cst.CSTNode | None
    cores: Sequence[Core]
    steps: Sequence[Step]
    optimizers: Optimizers


class RewriteHost(cst.CSTTransformer):
    """One pass over a script. `origin` says of each new node that stands for an old one which that was.

    `traced` are the functions of the script that the loss is computed by: they stay as they are, for the rules of modules.
    """

    def __init__(
        self,
        imports: Imports,
        trainings: Sequence[Training],
        traced: frozenset[str],
        eval_name: str,
        forwards: frozenset[cst.CSTNode],
        methods: Mapping[cst.CSTNode, str],
        devices: frozenset[cst.CSTNode],
        holders: frozenset[cst.CSTNode],
        tensors: frozenset[cst.CSTNode] = frozenset(),
        distributions: Mapping[cst.CSTNode, str] | None = None,
    ) -> None:
        super().__init__()
        self.imports, self.trainings, self.traced, self.eval_name = imports, trainings, traced, eval_name
        self.cores = [core for one in trainings for core in one.cores]
        self.steps = [step for one in trainings for step in one.steps]
        self.accumulating = [(core, step) for core, step in zip(self.cores, self.steps, strict=True) if core.accumulates]
        self.forwards, self.devices, self.holders, self.optimizers = forwards, devices, holders, _common(trainings)
        self._compiled = {**dict.fromkeys(forwards, eval_name), **methods}
        """Calls → the function that compiles each."""
        self._distributions = distributions or {}
        self._device_names, self._tensors = {code(node) for node in devices}, tensors
        self._prints = 0
        self._shown: set[cst.Arg] = set()
        """Arguments that become text."""
        schedulers = [one for training in trainings for one in training.optimizers.schedulers.values()]
        inner = [one for one in schedulers if one.inner is not None]
        parts = [part for one in schedulers for part in one.parts]
        self.idle = {s for training in trainings for one in training.optimizers.calls.values() for s in one.statements}
        self.idle |= {statement for one in inner for statement in (one.statement, one.inner) if statement is not None}
        self.idle |= {part.statement for part in parts}
        self._late: dict[cst.CSTNode, Any] = {}
        """Statements that stand for schedulers → the construction of their optimizer, which comes later than in the source."""
        self.evaluates: dict[str, list[cst.Call]] = {}
        """Function that compiles a module's call, or one of a method → the calls."""
        self.origin: dict[cst.CSTNode, cst.CSTNode] = {}
        self.helpers: set[str] = set()
        self.result_of: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._kept = 0
        self._plain: set[str] = set()
        self._checkpoints: frozenset[str] = frozenset()
        self._rows: frozenset[cst.CSTNode] = frozenset()
        """Tensors of data sets of which a sample has a row."""
        self._stores: Mapping[str, int] = {}
        """Name → how many statements give it a value."""
        self._rate_targets: set[cst.CSTNode] = set()
        self._losses: dict[cst.CSTNode, cst.BaseExpression] = {}
        self._used: set[cst.CSTNode] = set()
        """Statements that stand in a function of a step."""

    # -- walking ------------------------------------------------------------------------------------------------------
    def visit_Module(self, node: cst.Module) -> None:
        """Note the paths of checkpoints, and the arrays that data sets take rows of."""
        self._checkpoints = checkpoint_paths(node, self.imports)
        self._rows = sampled_arrays(node, self.imports, self._tensors)
        self._stores = Counter(
            name for block, _ in blocks(node) for s in body(block) if isinstance(s, cst.SimpleStatementLine) for name in bound(s)
        )

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Count how deep the walk is in code that is traced."""
        if self._stays(node):
            self._kept += 1
        self.optimizers = next((one.optimizers for one in self.trainings if one.function is node), self.optimizers)
        return super().on_visit(node) and not isinstance(node, (cst.Import, cst.ImportFrom))

    def _stays(self, node: cst.CSTNode) -> bool:
        if any(node in core.slice or node in core.fetched or node in core.losses for core in self.cores):
            return True
        if isinstance(node, cst.ClassDef):
            return not self._is_plain(node)
        return isinstance(node, cst.FunctionDef) and node.name.value in self.traced

    def _is_plain(self, cls: cst.ClassDef) -> bool:
        """Whether a class of the script is no module: its base classes are data sets, plain classes of the script, or none."""
        bases = [base.value for base in cls.bases if base.keyword is None]
        own = [base for base in bases if not self._data_helper(base) and code(base) not in ("object", *self._plain)]
        if not own:
            self._plain.add(cls.name.value)
        return not own

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one, and what each statement became."""
        kept = self._kept > 0
        if self._stays(original_node):
            self._kept -= 1
        result = updated_node if kept else super().on_leave(original_node, updated_node)
        if any(one.function is original_node for one in self.trainings):
            self.optimizers = _common(self.trainings)
        if isinstance(result, cst.CSTNode) and not self._is_helper(original_node):
            self.origin[result] = original_node
        if isinstance(original_node, cst.BaseStatement):
            self.result_of[original_node] = _statements(result)
        if any(original_node in core.losses for core in self.cores):
            assert isinstance(result, cst.BaseExpression)
            self._losses[original_node] = result
        return result

    def _is_helper(self, node: cst.CSTNode) -> bool:
        """Whether a node names or calls what a helper stands for: transforms of torchvision are modules, and their helpers are not."""
        return bool(self._data_helper(node.func if isinstance(node, cst.Call) else node))

    # -- the step -----------------------------------------------------------------------------------------------------
    def _block(self, original: Any, updated: Any) -> Any:
        if any(core.block is original for core in self.cores):
            updated = updated.with_changes(body=self._new_body(original))
        if any(statement is step.anchor for statement in original.body for step in self.steps):
            updated = updated.with_changes(body=self._with_functions(original))
        for core, step in self.accumulating:
            if any(statement is step.loop for statement in original.body):
                updated = updated.with_changes(body=self._with_zeros(core, step, list(updated.body)))
        for name in self.evaluates if isinstance(original, cst.Module) else ():
            updated = updated.with_changes(body=self._with_evaluation(name, list(updated.body)))
        return updated

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        """Put the steps into their loop; an emptied block gets a `pass`."""
        result = self._block(original_node, updated_node)
        return result if result.body else result.with_changes(body=[cst.parse_statement("pass")])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> Any:
        """Put the functions of the steps before the statement that they are called from."""
        new = without_imports(self._block(original_node, updated_node), self.imports)
        # Rules take a name that nothing imports for a tensor, and its `clone` or `trace` for that of one.
        needed = ["from flax import nnx"] if any(core.copied for core in self.cores) else []
        needed += ["import optax"] if "optax." in new.code and "import optax" not in new.code else []
        needed += ["import jax.numpy as jnp"] if "jnp.clip(" in new.code and "jax.numpy" not in new.code else []
        needed += ["import numpy as np"] if self._rows and "numpy" not in self.imports.dotted.values() else []
        new = _with_double(new) if DOUBLE in self.helpers else new
        first = next((i for i, line in enumerate(new.body) if _is_import(line) and "__future__" not in code(line)), 0)
        return new.with_changes(body=[*new.body[:first], *map(cst.parse_statement, needed), *new.body[first:]]) if needed else new

    def _new_body(self, original: Any) -> list[cst.BaseStatement]:
        here = [(core, step) for core, step in zip(self.cores, self.steps, strict=True) if core.block is original]
        firsts = {
            next(s for s in original.body if s in (*core.gone, *core.backwards) and s not in core.zeros): (core, step)
            for core, step in here
        }
        gone = {s for core, _ in here for s in (*core.gone, *core.after, *core.before, *core.fetched)} - self._standing()
        lines: list[cst.BaseStatement] = []
        comments: list[cst.EmptyLine] = []
        called = False
        for statement in original.body:
            new: list[cst.BaseStatement] = []
            if statement in firsts:
                new, called = self._call(*firsts[statement], statement), True
            elif statement not in gone:
                new = self.result_of[statement]
            elif not called and statement not in self._inner() and all(statement not in core.zeros for core, _ in here):
                # What is said above a statement that goes is said above the next one.
                comments += getattr(statement, "leading_lines", ())
            called = called and not any(statement in core.steps for core, _ in here)
            if new and comments:
                new = [new[0].with_changes(leading_lines=[*comments, *getattr(new[0], "leading_lines", ())]), *new[1:]]
                comments = []
            lines += new
        return lines

    def _standing(self) -> set[cst.CSTNode]:
        """The statements that stay in the loop although they are named by a core: what accumulates is updated where it was."""
        return {s for core, _ in self.accumulating for s in (*core.steps, *core.clips, *core.zeros)}

    def _inner(self) -> set[cst.CSTNode]:
        return {s for core in self.cores for s in (*core.slice, *core.after, *core.before, *core.fetched)}

    def _call(self, core: Core, step: Step, first: cst.CSTNode) -> list[cst.BaseStatement]:
        """The call of a step, between what stays before it and after it."""
        closed = closure_calls(core, step)[0] if core.closure is not None else []
        text = closed[0] if closed else accumulated_calls(step)[0] if core.accumulates else ""
        call = cst.parse_statement(text) if text else call_statement(step)
        lines = [one for s in core.before for one in self.result_of[s]]
        lines.append(call.with_changes(leading_lines=getattr(first, "leading_lines", ())))
        lines += [cst.parse_statement(f"{name} = {name}.item()") for s in core.fetched for name in bound(s)]
        lines += [one for s in core.after for one in self.result_of[s]]
        return [*lines, *map(cst.parse_statement, closed[1:])]

    def functions(self, core: Core, step: Step) -> list[Any]:
        """`loss_fn` and `train_step`."""
        inner = [s for s in body(core.block) if s in core.slice or s in core.fetched]
        statements: list[Any] = [one for s in inner for one in self._inside(core, s)]
        # What stands above the first of them stays in the loop, above the call.
        statements[:1] = [one.with_changes(leading_lines=()) for one in statements[:1]]
        statements = [self._noted(one, step.renamed(one)) for one in statements]
        loss = loss_function(step, statements, [self._noted(self._losses[one], step.renamed(self._losses[one])) for one in core.losses])
        self.helpers |= clip_helpers(core)
        if core.accumulates:
            return [loss, accumulate_function(step), apply_function(core, step)]
        return [loss, closure_function(core, step) if core.closure is not None else step_function(core, step)]

    def _inside(self, core: Core, statement: cst.CSTNode) -> list[Any]:
        """What a statement is in the function of a loss."""
        lines: list[Any] = self.result_of[statement]
        if statement in self._used:
            lines = [self._again(line) for line in lines]
        self._used.add(statement)
        if statement in core.fetched:
            small = lines[0].body[0]
            return [lines[0].with_changes(body=[small.with_changes(value=small.value.func.value)])]
        if statement in core.copied:
            others = frozenset(core.models) - set(core.owners)
            return [self._noted(line, line.visit(_CallCopies(others))) for line in lines]
        return lines

    def _again(self, node: cst.CSTNode) -> Any:
        """A second node like one, for another place of the file."""
        return self._noted(node, node.deep_clone())

    def _noted(self, node: Any, new: Any) -> Any:
        """`new`, of whose nodes those stand for old ones that lie in the same places of `node`."""
        if node in self.origin:
            self.origin.setdefault(new, self.origin[node])
        if type(node) is type(new) and len(node.children) == len(new.children):
            for old, one in zip(node.children, new.children, strict=True):
                self._noted(old, one)
        return new

    def _with_functions(self, original: Any) -> list[cst.BaseStatement]:
        lines: list[cst.BaseStatement] = []
        blank = [cst.EmptyLine(indent=False)] * (2 if isinstance(original, cst.Module) else 1)
        for statement in original.body:
            for core, step in zip(self.cores, self.steps, strict=True):
                if statement is step.anchor:
                    lines += [function.with_changes(leading_lines=blank) for function in self.functions(core, step)]
            lines += self.result_of[statement]
        return lines

    def _with_zeros(self, core: Core, step: Step, lines: list[Any]) -> list[Any]:
        """Gradients begin as zeros before the loop, where no statement there says so."""
        index = next((i for i, line in enumerate(lines) if self.origin.get(line) is step.loop), None)
        zero = accumulated_calls(step)[2]
        if index is None or any(code(line).strip() == zero for line in lines[:index]) or self._begins_with_zeros(core, step.loop):
            return lines
        self.helpers.add("zero_gradients")
        return [*lines[:index], cst.parse_statement(zero), *lines[index:]]

    def _begins_with_zeros(self, core: Core, loop: cst.CSTNode | None) -> bool:
        """Whether the outermost loop sets gradients to zero before the first `backward()`."""
        lines = list(body(loop.body)) if isinstance(loop, (cst.For, cst.While)) else []
        first = next((i for i, line in enumerate(lines) if line in core.backwards or not isinstance(line, cst.SimpleStatementLine)), 0)
        return any(line in core.zeros for line in lines[:first])

    def _with_evaluation(self, function_name: str, lines: list[Any]) -> list[Any]:
        """The function that compiles some calls, `eval_step`, before the first function or statement that calls it."""
        calls = self.evaluates[function_name]
        call = calls[0]
        count = max(len(one.args) for one in calls)
        names = [argument.value.value if isinstance(argument.value, cst.Name) else f"x{i}" for i, argument in enumerate(call.args)]
        if any(len(one.args) != count or any(a.keyword is not None for a in one.args) for one in calls) or len(set(names)) != count:
            names = ["*args"]
        if count == 1 and not all(code(one.args[0].value) == names[0] for one in calls) and call not in self.forwards:
            names = ["x"]
        parameters = ", ".join(names)
        called = "model" if call in self.forwards else f"model.{cst.ensure_type(call.func, cst.Attribute).attr.value}"
        text = f"@nnx.jit\ndef {function_name}(model, {parameters}):\n    return {called}({parameters})\n"
        first = next(i for i, line in enumerate(lines) if f"{function_name}(" in code(line))
        blank = [cst.EmptyLine(indent=False)] * 2
        function: Any = cst.parse_statement(text)
        return [*lines[:first], function.with_changes(leading_lines=blank), *lines[first:]]

    # -- statements ---------------------------------------------------------------------------------------------------
    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """Seeds, settings of torch, and the construction of optimizers."""
        if original_node in self._late:
            # The rate that is part of the transform needs what the script computes in between.
            return self._late[original_node]
        if original_node in self.idle:
            return cst.RemoveFromParent()
        if original_node in self._standing():
            return self._accumulated(original_node, updated_node)
        if any(original_node in core.zeros for core in self.cores):
            return cst.RemoveFromParent()
        if len(original_node.body) != 1:
            return updated_node
        small = original_node.body[0]
        if isinstance(small, cst.ImportFrom):
            return self._import(small, updated_node)
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._call_line(small.value, updated_node)
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call) and is_optimizer(self.imports.of(small.value.func)):
            made = self._optimizer(code(small.targets[0].target), small.value, updated_node)
            scheduler = next((one for one in self.optimizers.schedulers.values() if one.optimizer == code(small.targets[0].target)), None)
            if scheduler is None or scheduler.inner is None or not scheduler.late:
                return made
            self._late[scheduler.statement] = made
            return cst.RemoveFromParent()
        if isinstance(small, cst.Assign) and small.value in self.holders and self.imports.of(_function(small.value)) == "torch.load":
            return self._loaded_module(small, updated_node)
        if isinstance(small, cst.Assign) and (scheduler := self._scheduler(original_node)) is not None:
            known = self.optimizers.calls.get(scheduler.optimizer)
            groups = known.parts if known is not None and len(known.parts) > 1 else ()
            made = scheduler_text(scheduler, self.optimizers.constructions[scheduler.optimizer], groups)
            self.helpers |= made.helpers
            return updated_node.with_changes(body=[small.with_changes(value=cst.parse_expression(made.code))])
        if isinstance(small, (cst.Assign, cst.AugAssign)) and (rate := self._rate(original_node)) is not None:
            self.helpers.add("set_hyperparameter")
            return cst.parse_statement(f"set_hyperparameter({rate}, {self._new_rate(rate, small)})").with_changes(
                leading_lines=updated_node.leading_lines
            )
        if isinstance(small, cst.Assign) and self.imports.of(small.targets[0].target).startswith(IDLE_PREFIX):
            return cst.RemoveFromParent()
        return updated_node

    def _loaded_module(self, small: cst.Assign, updated: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """`model = torch.load(path)` → the state of the module that has this name already. Raises `NotUnderstoodError` where none has."""
        name = code(small.targets[0].target)
        if len(small.targets) != 1 or self._stores.get(name, 0) < 2:
            raise NotUnderstoodError("a module that a file gives, and that the script does not construct, has no rule", small)
        self.helpers.add("load_object_state")
        value: Any = updated.body[0]
        call = cst.Call(cst.Name("load_object_state"), [cst.Arg(small.targets[0].target), cst.Arg(value.value)])
        return updated.with_changes(body=[cst.Expr(call)])

    def _rate(self, statement: cst.SimpleStatementLine) -> str | None:
        """The optimizer whose only group gets a rate by this statement."""
        small = statement.body[0]
        target = small.targets[0].target if isinstance(small, cst.Assign) else small.target if isinstance(small, cst.AugAssign) else None
        name = first_rate(target) if target is not None else ""
        return name if name in self.optimizers.calls else None

    def _new_rate(self, optimizer: str, small: cst.Assign | cst.AugAssign) -> str:
        if isinstance(small, cst.Assign):
            return code(small.value)
        self.helpers.add("get_hyperparameter")
        operator = code(small.operator).strip().removesuffix("=")
        return f"get_hyperparameter({optimizer}) {operator} {code(small.value)}"

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """`optimizer.param_groups[0]["lr"]`, read; rows that are samples of a data set."""
        if original_node.value in self._rows:
            return from_host(updated_node, self.imports)
        name = first_rate(original_node)
        if name not in self.optimizers.calls or original_node in self._rate_targets:
            return updated_node
        self.helpers.add("get_hyperparameter")
        return cst.parse_expression(f"get_hyperparameter({name})")

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        """Note what is written to. Raises `NotUnderstoodError` for a gradient."""
        if isinstance(node.target, cst.Attribute) and node.target.attr.value == "grad" and not self._kept:
            raise NotUnderstoodError("a gradient that is set by hand has no rule", node)
        self._rate_targets.add(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        """Note what is written to."""
        self._rate_targets.add(node.target)

    def _scheduler(self, statement: cst.CSTNode) -> SchedulerCall | None:
        return next((one for one in self.optimizers.schedulers.values() if one.statement is statement), None)

    def _accumulated(self, original: cst.CSTNode, updated: cst.SimpleStatementLine) -> Any:
        """The update, and gradients set to zero, where gradients add up."""
        core, step = next((c, s) for c, s in self.accumulating if original in (*c.clips, *c.steps, *c.zeros))
        if original in core.clips:
            return cst.RemoveFromParent()
        _, update, zero = accumulated_calls(step)
        self.helpers |= set() if original in core.steps else {"zero_gradients"}
        line: Any = cst.parse_statement(update if original in core.steps else zero)
        return line.with_changes(leading_lines=updated.leading_lines)

    def _import(self, statement: cst.ImportFrom, updated: cst.SimpleStatementLine) -> Any:
        """An import of `torch.utils.data`, of schedulers or of torchvision goes, as far as helpers stand for its names."""
        if (
            statement.module is None
            or not f"{code(statement.module)}.".startswith((*HELPED, "torch.optim.lr_scheduler."))
            or isinstance(statement.names, cst.ImportStar)
        ):
            return updated
        remaining = [alias for alias in statement.names if code(alias.name) not in symbols()]
        if not remaining:
            return cst.RemoveFromParent()
        remaining[-1] = remaining[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(body=[statement.with_changes(names=remaining)])

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
        cores = [core for core in self.cores if name not in core.handed]
        held = [o for core in cores for n, o in zip(core.optimizers, core.held, strict=True) if n == name]
        if optimizer is None or optimizer.model not in (held or [optimizer.model]):
            raise NotUnderstoodError("an optimizer over other parameters than those of one module has no rule", call)
        own = [one for one in self.optimizers.schedulers.values() if one.optimizer == name]
        if len(own) > 1:
            raise NotUnderstoodError("several schedulers of one optimizer have no rule", call)
        if (dotted := self.imports.of(call.func)) in functions():
            text = self._own_optimizer(dotted, call, optimizer, bool(own))
        else:
            made = transform(dotted, call, optimizer, own[0] if own else None)
            self.helpers |= made.helpers
            text = f"nnx.Optimizer({optimizer.model}, {made.code}, wrt={optimizer.trainable or 'nnx.Param'})"
        small = updated.body[0]
        assert isinstance(small, cst.Assign)
        # What the source says above the groups, which go, is about the optimizer.
        above = [line for one in reversed(optimizer.statements) for line in getattr(one, "leading_lines", ())]
        updated = updated.with_changes(leading_lines=[*sorted(above, key=lambda line: line.comment is not None), *updated.leading_lines])
        return updated.with_changes(body=[small.with_changes(value=cst.parse_expression(text))])

    def _own_optimizer(self, dotted: str, call: cst.Call, optimizer: OptimizerCall, scheduled: bool) -> str:
        """The construction of an optimizer that calls a closure, which takes the module."""
        if scheduled or optimizer.trainable or optimizer.parts or optimizer.inject:
            raise NotUnderstoodError("an optimizer with a closure has no schedule, and all parameters of its module", call)
        if not any(core.closure is not None for core in self.cores):
            raise NotUnderstoodError("the loss of an optimizer with a closure is computed elsewhere", call)
        module = call.args[0].with_changes(value=cst.parse_expression(optimizer.model))
        try:
            text = function_text(dotted, code(call.with_changes(args=[module, *call.args[1:]])))
        except Refuse as error:
            raise NotUnderstoodError(str(error), call) from None
        self.helpers |= text.helpers
        return text.code

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """`for group in optimizer.param_groups: group["lr"] = rate` → the rate is set in the optimizer's state."""
        rate = rate_of(original_node, self.optimizers.calls)
        if rate is None:
            return self._parameter_loop(original_node, updated_node)
        optimizer, value = rate
        self.helpers |= {"set_hyperparameter", *(["get_hyperparameter"] if "get_hyperparameter" in code(value) else [])}
        return cst.parse_statement(f"set_hyperparameter({optimizer}, {code(value)})").with_changes(leading_lines=updated_node.leading_lines)

    def _parameter_loop(self, original: cst.For, updated: cst.For) -> Any:
        """A loop that gives each parameter of a module a new value; one that takes no gradients of a module which no optimizer has goes."""
        loop = parameter_loop(updated)
        if loop is None:
            return updated
        if frozen := loop.frozen():
            # The filters of the optimizers say which parameters are updated.
            everywhere = [one for one in self.optimizers.calls.values() if one.model == frozen and not one.trainable]
            if everywhere or frozen.count(".") > 1 + frozen.startswith("self."):
                raise NotUnderstoodError("an optimizer has parameters that are frozen", original)
            return cst.RemoveFromParent()
        if thawed := loop.thawed():
            whole = [one for one in self.optimizers.calls.values() if thawed.startswith(one.model) and not one.parts]
            if whole or not self.optimizers.calls:
                raise NotUnderstoodError(
                    "parameters that take gradients again have no rule where no group of an optimizer names them", original
                )
            return cst.RemoveFromParent()
        new = update_statement(loop)
        return updated if new is None else new.with_changes(leading_lines=updated.leading_lines)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        """A condition on clipping is part of the update."""
        gone = any(original_node in core.clips for core, _ in self.accumulating)
        return cst.RemoveFromParent() if gone else updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`with torch.no_grad():` goes, and what stands in it stays: no gradient is taken outside of the step."""
        items = [item.item for item in original_node.items]
        if not all(isinstance(item, cst.Call) and self.imports.of(item.func) in (*NO_GRADIENT, SAFE_GLOBALS) for item in items):
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
        if not isinstance(function, cst.Attribute) or function.attr.value not in STATES or not name_of(function.value):
            return None
        known = {*(m for core in self.cores for m in core.models), *self.optimizers.calls}
        if name_of(function.value) not in known and function.value not in self.holders:
            return None
        helper = STATES[function.attr.value]
        self.helpers.add(helper)
        return cst.Call(cst.Name(helper), [cst.Arg(function.value), *_positional(updated.args[:1])])

    def _data_helper(self, node: cst.CSTNode) -> str:
        """The helper that stands for a name of `torch.utils.data` or of torchvision, or ""."""
        dotted = self.imports.of(node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        name = dotted.rpartition(".")[2]
        return name if dotted.startswith(HELPED) and name in symbols() else ""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """`Dataset`, `DataLoader` and their kin."""
        return self._named(original_node, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`torch.utils.data.DataLoader` and its kin; `data` of a tensor is the tensor, since no gradient is taken outside of the step."""
        if original_node.attr.value == "data" and original_node.value in self._tensors and original_node not in self._rate_targets:
            return updated_node.value
        return self._named(original_node, updated_node)

    def _named(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        name = self._data_helper(original)
        if not name:
            return updated
        self.helpers.add(name)
        return cst.Name(name)

    def visit_Call(self, node: cst.Call) -> None:
        """Count how deep the walk is in what is printed."""
        self._prints += isinstance(node.func, cst.Name) and node.func.value == "print"
        speaks = code(node.func) in ("print", "str") or (isinstance(node.func, cst.Attribute) and node.func.attr.value == "format")
        self._shown |= {argument for argument in node.args if speaks}

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """A device that is printed is the platform's name."""
        shown = self._prints and original_node in self._shown and original_node.value in self.devices
        return updated_node.with_changes(value=cst.parse_expression(BACKEND)) if shown else updated_node

    def leave_FormattedStringExpression(
        self, original_node: cst.FormattedStringExpression, updated_node: cst.FormattedStringExpression
    ) -> cst.FormattedStringExpression:
        """A device in a text is the platform's name."""
        # What stands in a text is not observed on its own.
        shown = original_node.expression in self.devices or code(original_node.expression) in self._device_names
        return updated_node.with_changes(expression=cst.parse_expression(BACKEND)) if shown else updated_node

    # -- expressions --------------------------------------------------------------------------------------------------
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Draws come from a generator with torch's stream."""
        dotted = self.imports.of(original_node.func)
        for core, step in zip(self.cores, self.steps, strict=True):
            if original_node is core.closure:
                return cst.parse_expression(closure_calls(core, step)[1])
        if isinstance(updated_node.func, cst.Attribute) and updated_node.func.attr.value == "detach" and not updated_node.args:
            # Outside of the step no gradient is taken.
            return updated_node.func.value
        self._prints -= isinstance(original_node.func, cst.Name) and original_node.func.value == "print"
        if isinstance(original_node.func, cst.Attribute) and original_node.func.value in self._distributions:
            return self._drawn(original_node.func, self._distributions[original_node.func.value], updated_node)
        if (compiled := self._compiled.get(original_node)) is not None:
            self.evaluates.setdefault(compiled, []).append(original_node)
            module = updated_node.func if original_node in self.forwards else cst.ensure_type(updated_node.func, cst.Attribute).value
            return cst.Call(cst.Name(compiled), [cst.Arg(module), *updated_node.args])
        if (name := CHECKPOINTS.get(dotted)) is not None:
            self.helpers.add(name)
            kept = [a for a in updated_node.args if a.keyword is None or a.keyword.value in ("obj", "f")]
            if dotted == "torch.save" and original_node.args[0].value in self.holders:
                self.helpers.add("object_state")
                kept[0] = kept[0].with_changes(value=cst.Call(cst.Name("object_state"), [cst.Arg(kept[0].value)]))
            return updated_node.with_changes(func=cst.Name(name), args=_positional(kept))
        if (
            isinstance(original_node.func, cst.Attribute)
            and original_node.func.attr.value == "double"
            and original_node.func.value in self.holders
        ):
            self.helpers.add(DOUBLE)
            return cst.Call(cst.Name(DOUBLE), [cst.Arg(original_node.func.value)])
        if (asked := asks_existence(original_node, updated_node, dotted, self._checkpoints)) is not None:
            return asked
        if (taking := takes_folder(original_node, updated_node, dotted, self._checkpoints)) is not None:
            self.helpers.add(code(taking.func))
            return taking
        if (state := self._state(original_node, updated_node)) is not None:
            return state
        if dotted == "torch.accelerator.current_accelerator":
            return cst.parse_expression(f'{code(original_node.func).partition(".")[0]}.device("cuda")')
        if dotted in RANDOM_STATES:
            self.helpers.add(GENERATOR)
            return updated_node.with_changes(func=cst.parse_expression(f"{GENERATOR}.{RANDOM_STATES[dotted]}"))
        if dotted == "torch.Generator":
            self.helpers.add("TorchGenerator")
            return updated_node.with_changes(func=cst.Name("TorchGenerator"), args=[])
        if dotted.startswith(AVERAGES):
            return self._average(dotted, original_node, updated_node)
        if dotted in LIKE:
            return self._like(LIKE[dotted], original_node, updated_node)
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
        if any(a.keyword is not None and a.keyword.value not in ("size", "low", "high", "mean", "std") for a in kept):
            raise NotUnderstoodError(f"{dotted} with options has no rule outside of the step", original_node)
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(func=cst.Attribute(generator, cst.Name(dotted.rpartition(".")[2])), args=kept)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """A sum that takes the place of a call needs no parentheses where it is all that is assigned."""
        value = updated_node.value
        bare = isinstance(original_node.value, cst.Call) and isinstance(value, cst.BinaryOperation) and value.lpar
        return updated_node.with_changes(value=self._noted(value, value.with_changes(lpar=[], rpar=[]))) if bare else updated_node

    def _drawn(self, method: cst.Attribute, distribution: str, updated: cst.Call) -> cst.BaseExpression:
        """A sample of a distribution, by torch's own stream."""
        if method.attr.value not in ("sample", "rsample"):
            return updated
        text = SAMPLES.get(distribution)
        plain = len(updated.args) < 2 and not any(a.star for a in updated.args) and (not updated.args or "{1}" in (text or ""))
        if text is None or not plain:
            raise NotUnderstoodError(
                f"a sample of {distribution} with a shape, or of this distribution, has no rule outside of the step", method
            )
        self.helpers.add(GENERATOR)
        shape = "".join(f"*{code(argument.value)}, " for argument in updated.args)
        return cst.parse_expression(text.format(code(method.value), shape))

    def _average(self, dotted: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """`AveragedModel(model)` and its kin."""
        try:
            text = function_text(dotted, code(updated))
        except Refuse as error:
            raise NotUnderstoodError(str(error), original) from None
        self.helpers |= text.helpers
        return cst.parse_expression(text.code)

    def _like(self, method: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """`torch.randn_like(x)` → `default_generator.randn(*x.shape)`."""
        if len(updated.args) != 1 or updated.args[0].keyword is not None:
            raise NotUnderstoodError(f"torch.{method}_like with options has no rule outside of the step", original)
        self.helpers.add(GENERATOR)
        shape = cst.Attribute(updated.args[0].value, cst.Name("shape"))
        return cst.Call(cst.Attribute(cst.Name(GENERATOR), cst.Name(method)), [cst.Arg(shape, star="*")])


def _common(trainings: Sequence[Training]) -> Optimizers:
    """What all other functions see: the optimizers of every training function, by name."""
    every = [one.optimizers for one in reversed(trainings)]
    return Optimizers(
        {name: call for one in every for name, call in one.calls.items()},
        {name: scheduler for one in every for name, scheduler in one.schedulers.items()},
        {name: call for one in every for name, call in one.constructions.items()},
    )


def without_imports(module: cst.Module, imports: Imports) -> cst.Module:
    """The file without imports of torchvision whose names nothing reads any more."""
    used = {name for line in module.body if not _is_import(line) for name in read(line)}

    def stays(line: Any) -> bool:
        names = bound(line) if _is_import(line) else []
        return not names or bool(used & set(names)) or not all(imports.dotted.get(name, "").startswith("torchvision") for name in names)

    return module.with_changes(body=[line for line in module.body if stays(line)])


def _is_import(line: Any) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], (cst.Import, cst.ImportFrom))


def _with_double(module: cst.Module) -> cst.Module:
    """The file with JAX's float64 switched on, after its imports and before anything else."""
    index = next((i for i, line in enumerate(module.body) if i and not _is_import(line)), len(module.body))
    lines: Any = [cst.parse_statement(one) for one in ("import jax", 'jax.config.update("jax_enable_x64", True)')]
    return module.with_changes(body=[*module.body[:index], *lines, *module.body[index:]])


class _CallCopies(cst.CSTTransformer):
    """`module(x)` → `nnx.clone(module)(x)`: what it counts and draws is counted and drawn where it is computed again."""

    def __init__(self, modules: frozenset[str]) -> None:
        super().__init__()
        self._modules = modules

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Copy the module that is called."""
        if not isinstance(updated_node.func, cst.Name) or updated_node.func.value not in self._modules:
            return updated_node
        return updated_node.with_changes(func=cst.parse_expression(f"nnx.clone({updated_node.func.value})"))


def _function(node: cst.BaseExpression) -> cst.BaseExpression:
    """What a call calls; of anything else that itself."""
    return node.func if isinstance(node, cst.Call) else node


def _positional(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [cst.Arg(argument.value) for argument in arguments]


def _statements(result: Any) -> list[cst.BaseStatement]:
    if isinstance(result, cst.FlattenSentinel):
        return [node for node in result if isinstance(node, cst.BaseStatement)]
    return [result] if isinstance(result, cst.BaseStatement) else []


def traced_functions(module: cst.Module, cores: Sequence[Core]) -> frozenset[str]:
    """The functions of the script that the loss is computed by, one calling the other, those in other functions too."""
    lines = [s for block, inside in blocks(module) if not any(isinstance(one, cst.ClassDef) for one in inside) for s in body(block)]
    functions = {line.name.value: line for line in lines if isinstance(line, cst.FunctionDef)}
    todo = [name for core in cores for statement in [*core.slice, *core.losses] for name in read(statement)]
    names: set[str] = set()
    while todo:
        name = todo.pop()
        if name in functions and name not in names:
            names.add(name)
            todo += read(functions[name])
    return frozenset(names)
