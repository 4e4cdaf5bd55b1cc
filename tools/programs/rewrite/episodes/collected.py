"""Losses made of what a module gave in calls that lie apart, such as the steps of an episode: the calls note what they were made with, and the loss
computes their values again as one batch.

def select_action(state):                            def compute_log_prob(policy, state, action):
    probs = policy(state)                                probs = policy(state)
    m = Categorical(probs)                               m = Categorical(probs)
    action = m.sample()                                  return m.log_prob(action)
    log_probs.append(m.log_prob(action))
    return action.item()                             def select_action(state):
                                                         draws = random_state(policy)
                                                         probs = policy(state)
                                              →          m = Categorical(probs)
                                                         action = m.sample()
                                                         log_probs.append((draws, state, action))
                                                         return action.item()

losses = []                                          def compute_loss(log_prob, R):
for log_prob, R in zip(log_probs, returns):              return -log_prob * R
    losses.append(-log_prob * R)
loss = torch.stack(losses).sum()                     episode = stack_records(log_probs)
                                                     values = replay(compute_log_prob, policy, episode)
                                                     losses = jax.vmap(compute_loss)(values, returns)
                                                     loss = torch.stack(losses).sum()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import (
    RECORDS,
    STATE,
    binds_alone,
    blocks,
    body,
    call_of,
    called,
    function_of,
    method_of,
)
from migrate_agent.tools.programs.rewrite.names import SELF, FreeNames, Rename, bound, code, exposed, name_of, parse, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

REPLAY = "replay"
WHOLE = ("cat", "stack", "sum")
"""Functions that take a list of tensors as they take one tensor with a further first axis."""
SAMPLES = ("sample",)
"""Methods whose results no gradient reaches, and that an environment is told."""


@dataclass
class Site:
    """A place that adds a value of a module to a list: the statement, the list, the value, and the statements that it is computed by.

    Where a function gives the value back and its caller adds it, `statement` is its `return`, `element` which part of that, and `adds` the caller's.
    """

    statement: cst.CSTNode
    collected: str
    value: cst.BaseExpression
    model: str
    slice: list[cst.CSTNode]
    inputs: list[str]
    function: str
    draws: str
    anchor: cst.CSTNode
    """The statement of the file before which the function stands."""
    adds: cst.CSTNode
    element: int | None = None


@dataclass
class Use:
    """A statement that computes with what is collected, and the name by which it has it."""

    statement: cst.CSTNode
    name: str


@dataclass
class Loop:
    """A loop `for value, R in zip(values, returns)` of a training function that adds to lists what each pass gives."""

    statement: cst.For
    parts: list[cst.BaseExpression]
    targets: list[cst.BaseAssignTargetExpression]
    results: dict[str, cst.BaseExpression]
    lines: list[cst.CSTNode]


@dataclass
class Plan:
    """What is put in place of which statement of a script."""

    replaced: dict[cst.CSTNode, list[cst.CSTNode]] = field(default_factory=dict)
    before: dict[cst.CSTNode, list[cst.CSTNode]] = field(default_factory=dict)
    origin: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)


class CollectedValues(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules."""

    def __init__(self, module: cst.Module, modules: frozenset[str]) -> None:
        super().__init__()
        self._plan = _Planner(module, modules).plan()
        self.origin |= self._plan.origin

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Put the planned statements in."""
        result = super().on_leave(original_node, updated_node)
        lines = self._plan.replaced.get(original_node)
        first = self._plan.before.get(original_node, [])
        if lines is None and not first:
            return result
        return cst.FlattenSentinel([*first, *([result] if lines is None else lines)])


class _Planner:
    """Plans what becomes of the values that a script collects; of a form that is not understood nothing."""

    def __init__(self, module: cst.Module, modules: frozenset[str]) -> None:
        self._module, self._modules = module, modules
        self._free = FreeNames(text_of(module))
        self._plan = Plan()
        self._several = False
        self._outside = {name for line in module.body for name in bound(line)}
        self._blocks = list(blocks(module))

    def plan(self) -> Plan:
        """As the class says."""
        sites = [site for block, inside in self._blocks for site in self._sites(block, inside)]
        uses = {site.collected: self._uses(site) for site in sites}
        if not sites or len(uses) < len(sites) or any(one is None for one in uses.values()):
            return Plan()
        self._several = len(sites) > 1
        for site in sites:
            self._record(site)
            for use in uses[site.collected] or ():
                self._use(site, use)
        return self._plan

    # -- where values are collected -----------------------------------------------------------------------------------
    def _sites(self, block: cst.CSTNode, inside: Sequence[cst.CSTNode]) -> Iterator[Site]:
        """The places of a block that collect values of a module which acts: what it samples is what the values are of."""
        lines = list(body(block))
        samples = [s for s in lines if method_of(s)[1] in SAMPLES and binds_alone(s)]
        draws = ""
        for statement in lines if samples and inside else ():
            for added, collected, adds, element in self._added(statement, inside):
                chosen = self._computed(lines[: lines.index(statement)], samples, added)
                models = [n for s in [*chosen, added] for n in read(s) if n in self._modules]
                # What else is one of `self` is no name that a function could take.
                own = {n for s in [*chosen, added] for n in read(s) if n.startswith(SELF)} - set(models)
                if chosen and len(set(models)) == 1 and not own:
                    draws = draws or self._free.pick("draws", "random_streams")
                    site = self._sited(statement, collected, added, models[0], chosen, inside, draws)
                    site.adds, site.element = adds, element
                    yield from [site] if self._is_steady(lines, site) else []

    def _added(
        self, statement: cst.CSTNode, inside: Sequence[cst.CSTNode]
    ) -> Iterator[tuple[cst.BaseExpression, str, cst.CSTNode, int | None]]:
        """What a statement adds to which list, where, and as which part of what it returns."""
        added, collected = _appended(statement), _list_of(method_of(statement)[0])
        if added is not None and collected:
            yield added, collected, statement, None
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        value = small.value if isinstance(small, cst.Return) else None
        for element, part in enumerate(value.elements if isinstance(value, cst.Tuple) and len(inside) == 1 else ()):
            if (adds := self._adder(inside[0], element)) is not None:
                yield part.value, _list_of(method_of(adds)[0]), adds, element

    def _adder(self, function: cst.CSTNode, element: int) -> cst.CSTNode | None:
        """The statement that adds this part of what a function gives back to a list, where its only caller does nothing else with it."""
        name = function.name.value if isinstance(function, cst.FunctionDef) else ""
        mentions = sum(one.value == name for one in _names(self._module))
        for block, around in self._blocks:
            lines = list(body(block))
            for call in (s for s in lines if name and mentions == 2 and call_of(s) is not None and code(call_of(s).func) == name):  # type: ignore[union-attr]
                target = call.body[0].targets[0].target if binds_alone(call) else None  # type: ignore[attr-defined]
                part = target.elements[element].value if isinstance(target, cst.Tuple) and element < len(target.elements) else None
                reads = list(self._readers(part.value, function_of(around))) if isinstance(part, cst.Name) else []
                if len(reads) == 1 and reads[0] in lines and code(_appended(reads[0]) or cst.Name("_")) == code(part):
                    return reads[0]
        return None

    def _readers(self, name: str, function: cst.CSTNode | None) -> Iterator[cst.CSTNode]:
        """The statements of a function (`None`: of the file) that read a name, other than in loops which give it values of their own."""
        for block, around in self._blocks:
            loops = [_bound_by(one.target) for one in around if isinstance(one, cst.For)]
            if function_of(around) is function and not any(name in names for names in loops):
                yield from (statement for statement in body(block) if name in _read_by(statement))

    def _is_steady(self, lines: Sequence[cst.CSTNode], site: Site) -> bool:
        """Whether what the value is computed from is still there by its name where it is noted."""
        last = lines.index(site.statement)
        for name in site.inputs:
            first = next((i for i, s in enumerate(lines[:last]) if s in site.slice and name in read(s)), last)
            if any(name in bound(s) for s in lines[first + 1 : last]):
                return False
        return True

    def _computed(self, before: Sequence[cst.CSTNode], samples: Sequence[cst.CSTNode], value: cst.BaseExpression) -> list[cst.CSTNode]:
        """The statements by which a value comes of modules, without what is sampled."""
        tainted: set[str] = set()
        differentiable = []
        for statement in before:
            if statement in samples:
                tainted -= set(bound(statement))
            elif self._modules & set(called(statement)) or tainted & set(read(statement)):
                differentiable.append(statement)
                tainted |= set(bound(statement))
            else:
                tainted -= set(bound(statement))
        needed, chosen = set(read(value)), list[cst.CSTNode]()
        for statement in reversed(differentiable):
            if needed & set(bound(statement)):
                chosen.insert(0, statement)
                needed |= set(read(statement))
        return chosen

    def _sited(
        self,
        statement: cst.CSTNode,
        collected: str,
        value: cst.BaseExpression,
        model: str,
        chosen: list[cst.CSTNode],
        inside: Sequence[cst.CSTNode],
        draws: str,
    ) -> Site:
        made = {name for one in chosen for name in bound(one)}
        names = dict.fromkeys(n for one in [*chosen, value] for n in read(one) if n not in made and n != model)
        function = function_of(inside)
        local = self._locals(function)
        inputs = [name for name in names if name in local and name.isidentifier()]
        many = collected.rpartition(".")[2].removeprefix(f"{model}_").removeprefix("saved_")
        single = f"{many.removesuffix('ies')}y" if many.endswith("ies") else many.removesuffix("s") or "value"
        return Site(statement, collected, value, model, chosen, inputs, self._free.pick(f"compute_{single}"), draws, inside[0], statement)

    def _locals(self, function: cst.CSTNode | None) -> set[str]:
        """Names that a function gives values to; without one, those that loops of the file do."""
        if not isinstance(function, cst.FunctionDef):
            return {name for line in self._module.body if isinstance(line, (cst.For, cst.While)) for name in bound(line)}
        return {param.name.value for param in function.params.params} | {name for line in body(function.body) for name in bound(line)}

    # -- where they are used ------------------------------------------------------------------------------------------
    def _uses(self, site: Site) -> list[Use] | None:
        """The statements that compute with what is collected; `None` where the script does other things with it."""
        every, uses, others = {site.collected}, list[Use](), list[cst.CSTNode]()
        for block, _ in self._blocks:
            names = set(every)
            for statement in body(block):
                here = statement.iter if isinstance(statement, cst.For) else statement
                known = names & _lists_in(here) if isinstance(statement, (cst.SimpleStatementLine, cst.For)) else set()
                if not known or statement is site.adds or _empties(statement, known):
                    continue
                if (alias := _alias(statement, known)) is not None:
                    every.add(alias)
                    names.add(alias)
                    others.append(statement)
                    continue
                use = Use(statement, min(known))
                if len(known) > 1 or not self._is_simple(use, site):
                    return None
                uses.append(use)
                # What the list is made into may have its name.
                names -= set(bound(statement))
        if not uses or self._used_elsewhere(site.collected):
            return None
        self._plan.replaced |= {statement: [] for statement in others}
        return uses

    def _used_elsewhere(self, collected: str) -> bool:
        """Whether an attribute of this name is one of something else too, and more is done with it there than emptying it."""
        owner, _, name = collected.rpartition(".")
        for block, _ in self._blocks if owner else ():
            for statement in body(block):
                here = _lists_in(statement) if isinstance(statement, cst.SimpleStatementLine) else _headers(statement)
                others = {one for one in here if one != collected and one.rpartition(".")[2] == name}
                if others and not _empties(statement, others):
                    return True
        return False

    def _is_simple(self, use: Use, site: Site) -> bool:
        if isinstance(use.statement, cst.For):
            return self._loop(use.statement) is not None
        nodes = list(ast.walk(parse(use.statement)))
        calls = [n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in WHOLE]
        handed = sum(ast.unparse(argument) == use.name for call in calls for argument in call.args)
        loads = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
        return not isinstance(site.value, cst.Tuple) and handed == 1 == sum(ast.unparse(n) == use.name for n in loads)

    def _loop(self, loop: cst.For) -> Loop | None:
        """A loop over what is zipped, each of whose passes stands by itself."""
        call = loop.iter if isinstance(loop.iter, cst.Call) and code(loop.iter.func) == "zip" else None
        parts = [argument.value for argument in call.args] if call is not None else [loop.iter]
        targets: list[Any] = [loop.target]
        if call is not None and isinstance(loop.target, cst.Tuple):
            targets = [element.value for element in loop.target.elements]
        lines = list(body(loop.body))
        appends = {name_of(method_of(s)[0]): _appended(s) for s in lines if method_of(s)[1] == "append"}
        plain = [s for s in lines if method_of(s)[1] != "append"]
        if loop.orelse is not None or len(parts) != len(targets) or not appends or "" in appends or not all(map(binds_alone, plain)):
            return None
        if not all(isinstance(one, cst.SimpleStatementLine) for one in lines) or len(appends) + len(plain) != len(lines):
            return None
        known = {*(name for target in targets for name in _bound_by(target)), *self._outside, *appends, *_BUILTINS}
        if set(exposed(cst.Module(loop.body.body))) - known:  # type: ignore[arg-type]
            return None
        if set(appends) & {name for s in plain for name in read(s)}:
            return None
        return Loop(loop, parts, targets, {n: v for n, v in appends.items() if v is not None}, plain)

    # -- what is written ----------------------------------------------------------------------------------------------
    def _record(self, site: Site) -> None:
        """The function of the value, and what is noted in the value's place."""
        inner = {site.model: site.model.rpartition(".")[2]}
        lines = [self._renamed(one, inner) for one in site.slice]
        lines[:1] = [one.with_changes(leading_lines=()) for one in lines[:1]]
        parameters = [cst.Param(cst.Name(name)) for name in (inner[site.model], *site.inputs)]
        result = cst.SimpleStatementLine([cst.Return(self._renamed(site.value, inner))])
        function = cst.FunctionDef(
            cst.Name(site.function), cst.Parameters(parameters), cst.IndentedBlock([*lines, result]), leading_lines=_BLANK
        )
        self._before(site.anchor, function)
        note: Any = cst.parse_statement(f"{site.draws} = {STATE}({site.model})")
        if not any(code(one) == code(note) for one in self._plan.before.get(site.slice[0], ())):
            self._before(site.slice[0], note)
        record = cst.parse_expression(f"({', '.join((site.draws, *site.inputs))})")
        line: Any = self._plan.replaced.get(site.statement, [site.statement])[0]
        self._plan.replaced[site.statement] = [self._with_record(line, site, record)]

    def _with_record(self, line: Any, site: Site, record: cst.BaseExpression) -> cst.CSTNode:
        """The statement with what is noted in the place of the value."""
        if site.element is None:
            return cst.parse_statement(f"{site.collected}.append({code(record)})").with_changes(leading_lines=line.leading_lines)
        small = line.body[0]
        elements = list(small.value.elements)
        elements[site.element] = elements[site.element].with_changes(value=record)
        new = line.with_changes(body=[small.with_changes(value=small.value.with_changes(elements=elements))])
        return self._noted(line, new)  # type: ignore[no-any-return]

    def _use(self, site: Site, use: Use) -> None:
        single, many = site.function.removeprefix("compute_"), site.collected.rpartition(".")[2]
        episode = self._free.pick(*(() if self._several else ("episode",)), f"{single}_records")
        values = self._free.pick(*(() if self._several else ("values",)), f"replayed_{many}")
        stacked: Any = cst.parse_statement(f"{episode} = {RECORDS}({site.collected})")
        replayed: Any = cst.parse_statement(f"{values} = {REPLAY}({site.function}, {site.model}, {episode})")
        self._keep_module(replayed, site)
        statement: Any = use.statement
        if isinstance(statement, cst.For) and statement not in self._plan.replaced:
            lines = self._mapped(statement, use.name, values)
        else:
            # Another list may be used in the same statement.
            *earlier, last = self._plan.replaced.get(statement, [statement])
            self._plan.before.setdefault(statement, []).extend(earlier)
            lines = [self._noted(last, last.visit(_Put(use.name, values))).with_changes(leading_lines=())]
        comments = statement.leading_lines if statement not in self._plan.replaced else ()
        self._plan.replaced[statement] = [stacked.with_changes(leading_lines=comments), replayed, *lines]

    def _keep_module(self, replayed: cst.CSTNode, site: Site) -> None:
        """The module's name is seen to hold a module where it is handed over too."""
        old = next(n for s in [*site.slice, site.value] for n in _chains(s) if code(n) == site.model)
        for node in _chains(replayed):
            if code(node) == site.model:
                self._plan.origin[node] = old

    def _mapped(self, use: cst.For, collected: str, values: str) -> list[cst.CSTNode]:
        """The loop as a function that is mapped over what is zipped."""
        loop = self._loop(use)
        assert loop is not None
        names = list(loop.results)
        name = self._free.pick("compute_loss" if len(names) == 1 else "compute_losses", "loss_of_step")
        parameters, lines = [], []
        for target in loop.targets:
            if isinstance(target, cst.Name):
                parameters.append(cst.Param(self._again(target)))
                continue
            whole = self._free.pick("value_of_step", "part_of_step")
            parameters.append(cst.Param(cst.Name(whole)))
            bare = self._noted(target, target.with_deep_changes(target, lpar=[], rpar=[]).deep_clone())
            lines.append(cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(bare)], cst.Name(whole))]))
        lines += [self._again(one).with_changes(leading_lines=()) for one in loop.lines]
        results = [self._again(value) for value in loop.results.values()]
        value = results[0] if len(results) == 1 else cst.Tuple([cst.Element(one) for one in results], lpar=[], rpar=[])
        lines.append(cst.SimpleStatementLine([cst.Return(value)]))
        lines = [self._fetched(line) for line in lines]
        function = cst.FunctionDef(cst.Name(name), cst.Parameters(parameters), cst.IndentedBlock(lines), leading_lines=_BLANK)
        self._before(self._top(use), function)
        call: Any = cst.parse_expression(f"jax.vmap({name})()")
        arguments = [cst.Arg(cst.Name(values) if _list_of(part) == collected else self._again(part)) for part in loop.parts]
        assign = cst.parse_statement(f"{', '.join(names)} = None")
        assert isinstance(assign, cst.SimpleStatementLine)
        small: Any = assign.body[0]
        self._drop_empty(use, names)
        return [assign.with_changes(body=[small.with_changes(value=call.with_changes(args=arguments))])]

    def _drop_empty(self, use: cst.For, names: Sequence[str]) -> None:
        """The empty lists that the loop filled go."""
        block = next(block for block, _ in self._blocks if use in body(block))
        for statement in body(block):
            if isinstance(statement, cst.SimpleStatementLine) and any(
                code(statement).strip().partition("#")[0].strip() == f"{name} = []" for name in names
            ):
                self._plan.replaced[statement] = []

    def _fetched(self, line: cst.CSTNode) -> Any:
        """`value.item()` of what is a number there: no gradient reaches what was fetched."""
        return self._noted(line, line.visit(_Fetches(self._plan.origin)))

    def _top(self, statement: cst.CSTNode) -> cst.CSTNode:
        """The statement of the file that holds another one."""
        inside = next(inside for block, inside in self._blocks if statement in body(block))
        return inside[0] if inside else statement

    def _before(self, statement: cst.CSTNode, new: Any) -> None:
        self._plan.before.setdefault(statement, []).append(new)

    def _again(self, node: Any) -> Any:
        """A second node like one; its nodes stand for the same old ones."""
        new = node.deep_clone()
        self._note(node, new)
        return new

    def _renamed(self, node: Any, names: dict[str, str]) -> Any:
        """A second node like one, in which the module has the name of a parameter."""
        return self._noted(node, node.deep_clone().visit(Rename(names)))

    def _note(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        self._plan.origin.setdefault(new, self._plan.origin.get(node, node))
        if type(node) is type(new) and len(node.children) == len(new.children):
            for old, one in zip(node.children, new.children, strict=True):
                self._note(old, one)

    def _noted(self, node: cst.CSTNode, new: Any) -> Any:
        self._note(node, new)
        return new


_BLANK = [cst.EmptyLine(indent=False)] * 2
_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


class _Put(cst.CSTTransformer):
    """Another name for what is read by a name."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old, self._new = old, new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """The name."""
        return cst.Name(self._new) if updated_node.value == self._old else updated_node

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        """What is written keeps its name."""
        return updated_node.with_changes(target=original_node.target)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`self.log_probs`."""
        return cst.Name(self._new) if code(original_node) == self._old else updated_node.with_changes(attr=original_node.attr)


class _Fetches(cst.CSTTransformer):
    """`value.item()` → `value.detach().reshape(())`."""

    def __init__(self, origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._origin = origin

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """As the class says."""
        function = updated_node.func
        if not isinstance(function, cst.Attribute) or function.attr.value != "item" or updated_node.args:
            return updated_node
        value: Any = original_node.func.value  # type: ignore[attr-defined]
        detached = cst.Call(cst.Attribute(function.value, cst.Name("detach")))
        new = cst.Call(cst.Attribute(detached, cst.Name("reshape")), [cst.Arg(cst.Tuple([]))])
        for node in (detached, new):
            self._origin[node] = self._origin.get(value, value)
        return new


def _bound_by(target: cst.CSTNode) -> list[str]:
    """Names of a loop's target."""
    return [node.value for node in _names(target)]


def _appended(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """What a statement `xs.append(x)` adds."""
    call = call_of(statement) if method_of(statement)[1] == "append" else None
    return call.args[0].value if call is not None and len(call.args) == 1 and not bound(statement) else None


def _read_by(statement: cst.CSTNode) -> list[str]:
    """Names that a statement reads; of a loop or a condition, those of its header."""
    if isinstance(statement, cst.SimpleStatementLine):
        return read(statement)
    return list(_headers(statement))


def _list_of(node: cst.CSTNode | None) -> str:
    """The text of a name, or of an attribute of one; "" for anything else."""
    chain = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    return code(node) if node is not None and (chain or isinstance(node, cst.Name)) else ""


def _lists_in(node: cst.CSTNode) -> set[str]:
    """Names, and attributes of names, that a piece of a program reads."""
    nodes = [one for one in ast.walk(parse(node)) if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)]
    return {ast.unparse(one) for one in nodes}


def _headers(statement: cst.CSTNode) -> set[str]:
    """What the header of a loop or a condition reads."""
    parts = [getattr(statement, name, None) for name in ("test", "iter")]
    return {text for part in parts if isinstance(part, cst.BaseExpression) for text in _lists_in(part)}


def _alias(statement: cst.CSTNode, names: set[str]) -> str | None:
    """The name that a statement gives to a list that has one."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    plain = isinstance(small, cst.Assign) and len(small.targets) == 1 and _list_of(small.value) in names
    return (name_of(small.targets[0].target) or None) if plain and isinstance(small, cst.Assign) else None


def _empties(statement: cst.CSTNode, names: set[str]) -> bool:
    """Whether a statement empties a list: `del xs[:]`, `xs.clear()`, `xs = []`."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    if isinstance(small, cst.Del):
        return code(small.target) in {f"{name}[:]" for name in names}
    receiver, method = method_of(statement)
    return method == "clear" and _list_of(receiver) in names


def _chains(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The names and attributes of a piece of a program."""
    chains: list[cst.CSTNode] = []

    class Chains(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            chains.append(node)

        def visit_Attribute(self, node: cst.Attribute) -> None:
            chains.append(node)

    node.visit(Chains())
    return iter(chains)


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    names: list[cst.Name] = []

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            names.append(node)

    node.visit(Names())
    return iter(names)
