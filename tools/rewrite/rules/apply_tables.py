"""Applies the rows of the operator and layer tables to a call in source form."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.randomness import functions_named
from migrate_agent.tools.rewrite.analysis.ranges.amounts import Amounts
from migrate_agent.tools.rewrite.analysis.ranges.empty_vectors import may_be_empty_vector
from migrate_agent.tools.rewrite.analysis.ranges.number_functions import only_computes
from migrate_agent.tools.rewrite.analysis.ranges.positions import gives_positions
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.known_masks import known_selections
from migrate_agent.tools.rewrite.tables.eager import EAGER
from migrate_agent.tools.rewrite.tables.helpers import rngs_of, symbols
from migrate_agent.tools.rewrite.tables.registry import REPEATABLE, UNKNOWN, Layer, Op, Refuse, idioms, is_repeatable, ops
from migrate_agent.tools.rewrite.tables.signatures import DROPPED, SYNONYMS, BindError, Bound, Signature, bind, parse_signature
from migrate_agent.tools.rewrite.tables.templates import Missing, fill
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

_MODULE = cst.Module([])


CREATION = frozenset({"zeros", "ones", "empty", "full", "arange", "eye", "linspace"})
"""Functions whose JAX counterparts take `dtype` and `device` too, so that a spread `**options` may be passed on."""

TORCHS_OWN = frozenset({"dtype", "device", "layout", "memory_format", "generator"})
"""Arguments whose values are spelled otherwise in JAX."""


@dataclass(frozen=True)
class SourceCall:
    """The call as rows see it (`tables.Call`)."""

    context: Context
    signature: Signature
    bound: Bound

    def given(self, name: str) -> bool:
        return name in self.bound.values or bool(self.bound.variadic.get(name)) or name in self.bound.dropped

    def text(self, name: str) -> str:
        if name in self.bound.values:
            return _MODULE.code_for_node(self.bound.values[name])
        if name in self.bound.variadic:
            return ", ".join(argument.star + _MODULE.code_for_node(argument.value) for argument in self.bound.variadic[name])
        return self.signature.defaults.get(name, "")

    def literal(self, name: str) -> Any:
        if name in self.bound.variadic:
            text = f"({', '.join(_MODULE.code_for_node(a.value) for a in self.bound.variadic[name])},)"
        else:
            text = self.text(name)
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError):
            return UNKNOWN

    def constant(self, name: str) -> Any:
        value, source, function = self.literal(name), self.bound.sources.get(name), self.context.function
        if value is not UNKNOWN or not isinstance(source, cst.Name) or function is None:
            return value
        text = source.value
        stores = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == text and not isinstance(node.ctx, ast.Load)]
        bound = [node.value for node in walk(function) if isinstance(node, ast.Assign) and node.targets == stores]
        if len(bound) != 1 or text in argument_names(function) or not isinstance(bound[0], ast.Tuple):
            return UNKNOWN
        try:
            return ast.literal_eval(bound[0])
        except ValueError:
            return UNKNOWN

    def observed(self, name: str) -> Observed | None:
        source = self.bound.sources.get(name)
        if source is not None:
            return self.context.observed(source)
        if not self.given(name) and self.signature.defaults.get(name) == "None":
            return Observed(("none",))
        return None

    def each(self, name: str) -> list[Observed | None]:
        source = self.bound.sources.get(name)
        if name in self.bound.variadic:
            return [self.context.observed(value) for value in self.bound.others]
        if isinstance(source, (cst.List, cst.Tuple)):
            return [self.context.observed(element.value) for element in source.elements]
        if isinstance(source, (cst.ListComp, cst.GeneratorExp)):
            return [self.context.observed(source.elt)]
        return []

    def innermost(self, name: str) -> list[Observed | None]:
        todo: list[cst.CSTNode | None] = list(self.bound.others) if name in self.bound.variadic else [self.bound.sources.get(name)]
        facts: list[Observed | None] = []
        while todo:
            inside: list[cst.BaseExpression] = []
            match todo.pop():
                case cst.List(elements=elements) | cst.Tuple(elements=elements):
                    inside = [element.value for element in elements]
                case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element):
                    inside = [element]
            lists = [one for one in inside if isinstance(one, (cst.List, cst.Tuple, cst.ListComp, cst.GeneratorExp))]
            todo += lists
            facts += [self.context.observed(one) for one in inside if one not in lists]
        return facts

    def is_handed(self, name: str) -> bool:
        source, function = self.bound.sources.get(name), self.context.function
        if not isinstance(source, cst.Name) or function is None or source.value not in argument_names(function):
            return False
        return not any(
            isinstance(node, ast.Name) and node.id == source.value and isinstance(node.ctx, ast.Store) for node in walk(function)
        )

    def is_position(self, name: str) -> bool:
        source, function = self.bound.sources.get(name), self.context.function
        return source is not None and function is not None and gives_positions(function, _tree(_MODULE.code_for_node(source)))

    def may_be_empty_vector(self, name: str) -> bool:
        source, function = self.bound.sources.get(name), self.context.function
        if not isinstance(source, (cst.List, cst.Tuple)) or function is None:
            return False
        trees = [_tree(_MODULE.code_for_node(element.value)) for element in source.elements]
        return any(may_be_empty_vector(function, tree) for tree in trees)

    def is_known(self, name: str) -> bool:
        source = self.bound.sources.get(name)
        return source is not None and self.context.span(source) in known_selections(self.context).numbers

    def are_amounts(self, name: str) -> bool:
        source, context = self.bound.sources.get(name), self.context
        variadic = self.bound.variadic.get(name, ())
        if isinstance(source, (cst.List, cst.Tuple)):
            elements: list[cst.BaseExpression] = [element.value for element in source.elements]
        else:
            elements = list(self.bound.others) if variadic and not any(argument.star for argument in variadic) else []
        amounts = Amounts(context.function, context.cls)
        trees = [_tree(_MODULE.code_for_node(element)) for element in elements]
        return bool(trees) and all(map(amounts.is_amount, trees))

    def repeats(self, name: str) -> bool:
        if is_repeatable(_tree(self.text(name) or "0")):
            return True
        source = self.bound.sources.get(name)
        calls = [node for node in m.findall(source, m.Call()) if isinstance(node, cst.Call)] if source is not None else []
        return bool(calls) and all(map(self._only_computes, calls))

    def _only_computes(self, call: cst.Call) -> bool:
        if isinstance(call.func, cst.Name) and call.func.value in REPEATABLE:
            return True
        repo = self.context.repo
        keys = functions_named(repo, self.context.dotted(call.func), self.context.observed(call.func))
        functions = [repo.files[path].functions.get(name) for path, name in keys if path in repo.files]
        return (
            bool(functions)
            and len(functions) == len(keys)
            and all(function is not None and only_computes(function) for function in functions)
        )

    def draws(self, name: str) -> bool:
        source = self.bound.sources.get(name)
        if source is None:
            return False
        functions = functions_named(self.context.repo, self.context.dotted(source), self.context.observed(source))
        return bool(functions) and functions <= self.context.randomness.parameter

    def count(self, name: str) -> int:
        arguments = self.bound.variadic.get(name, ())
        return len(arguments) + sum(1 for argument in arguments if argument.star)

    def parts(self) -> tuple[str, ...]:
        assign = self.context.parent()
        target = assign.targets[0].target if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
        elements = target.elements if isinstance(target, cst.Tuple) else ()
        names = [element.value.value if isinstance(element.value, cst.Name) else "" for element in elements]
        return () if any(isinstance(element, cst.StarredElement) for element in elements) else tuple(names)


def _tree(text: str) -> ast.expr:
    """An expression, which may stand on several lines."""
    return ast.parse(f"({text}\n)", mode="eval").body


def apply_op(
    context: Context,
    op: Op,
    arguments: Sequence[cst.Arg],
    originals: Sequence[cst.Arg],
    receiver: tuple[cst.BaseExpression, cst.CSTNode] | None = None,
) -> cst.BaseExpression:
    """The JAX expression for a torch call. Raises `Refuse`."""
    signature = parse_signature(op.signature)
    spread = [argument for argument in arguments if argument.star == "**"]
    if len(spread) == 1 and not signature.keywords and op.name.startswith("torch.") and op.name.removeprefix("torch.") in CREATION:
        plain = [i for i, argument in enumerate(arguments) if argument.star != "**"]
        call_without_options = apply_op(context, op, [arguments[i] for i in plain], [originals[i] for i in plain], receiver)
        if isinstance(call_without_options, cst.Call):
            return call_without_options.with_changes(args=tidy([*call_without_options.args, *spread]))
    arguments = [argument.with_changes(value=bare(argument.value)) for argument in arguments]
    if receiver is None and any(argument.star for argument in arguments) and passes_on(op):
        return cst.Call(context.helper(op.name.rpartition(".")[2]), tidy([a for a in arguments if not _is_ignored(a, signature)]))
    if any(argument.star == "*" for argument in arguments):
        signature, op = spreading(op, signature, arguments, 0 if receiver is None else 1)
        arguments, originals = written_out(signature, arguments, originals, 0 if receiver is None else 1)
    try:
        bound = bind(signature, arguments, originals, cst.Arg(bare(receiver[0])) if receiver else None)
    except BindError as error:
        raise Refuse(f"{op.name}: {error}", "unbound-call") from error
    if receiver:
        first = signature.names[0] if signature.names else signature.variadic
        bound = replace(bound, sources={**bound.sources, first: receiver[1]})  # type: ignore[dict-item]
    call = SourceCall(context, signature, bound)
    return expand(context, _template_for(op, call), _with_demoted_scalar(context, bound), op.name, signature.defaults)


def written_out(
    signature: Signature, arguments: Sequence[cst.Arg], originals: Sequence[cst.Arg], position: int
) -> tuple[Sequence[cst.Arg], Sequence[cst.Arg]]:
    """The arguments with a spread name as its elements, where torch's signature says how many these are: `linspace(*r, 5)` →
    `linspace(r[0], r[1], 5)`. `position`: how many names the receiver takes.
    """
    named = {argument.keyword.value for argument in arguments if argument.keyword}
    stars = [i for i, argument in enumerate(arguments) if argument.star]
    positional = [i for i, argument in enumerate(arguments) if argument.keyword is None]
    names = [name for name in signature.names[position:] if SYNONYMS.get(name, name) not in {SYNONYMS.get(one, one) for one in named}]
    if signature.variadic or len(stars) != 1 or arguments[stars[0]].star != "*" or any(name in signature.defaults for name in names):
        return arguments, originals
    spread, count = arguments[stars[0]].value, len(names) - len(positional) + 1
    # Anything else would be computed as often as it has elements.
    if not isinstance(spread, (cst.Name, cst.Attribute)) or count < 1:
        return arguments, originals
    elements = [cst.Arg(_element(spread, i)) for i in range(count)]
    at = stars[0]
    return [*arguments[:at], *elements, *arguments[at + 1 :]], [*originals[:at], *elements, *originals[at + 1 :]]


def _element(value: cst.BaseExpression, index: int) -> cst.Subscript:
    return cst.Subscript(value, [cst.SubscriptElement(cst.Index(cst.Integer(str(index))))])


def spreading(op: Op, signature: Signature, arguments: Sequence[cst.Arg], position: int) -> tuple[Signature, Op]:
    """The signature and the row for a call that spreads its last positional arguments (`torch.eye(*shape)` → `jnp.eye(*shape)`).

    `position`: how many names the receiver takes. They are as they were where the template does not
    take these arguments in torch's order, or needs one of them elsewhere.
    """
    positional = [argument.star for argument in arguments if argument.keyword is None and argument.star != "**"]
    position += len(positional) - 1
    template = op.to if isinstance(op.to, str) else op.spread
    if signature.variadic or "*" not in positional[-1:] or not template:
        return signature, op
    covered = signature.names[position:]
    run = ", ".join(f"{{{name}}}" for name in covered)
    # What a spread argument leaves out must mean the same in JAX, as it must where a caller leaves it out: no placeholder has a default.
    if (
        template.count(run) != 1
        or not re.search(re.escape(run) + r"(\)|, \w+=)", template)
        or any(template.count(f"{{{name}") != 1 for name in covered)
    ):
        return signature, op
    rest = replace(signature, names=signature.names[:position], variadic="_rest")
    return rest, replace(op, signature="", to=template.replace(run, "{*_rest}"))


@cache
def takes_options(dotted: str) -> bool:
    """Whether a vendored function or class has the name and parameters of torch's, options among them: as a value it can be called with any."""
    name, signature = dotted.rpartition(".")[2], parse_signature(ops()[dotted].signature)
    if name not in symbols() or rngs_of(name):
        return False
    names = _parameters(name)
    expected = [name for name in signature.names if not name.startswith("_")]
    required = [name for name in signature.names if name not in signature.defaults]
    return len(names) > len(required) and names == expected[: len(names)]


def _parameters(name: str) -> list[str]:
    """The positional parameters of a vendored function, or of a vendored class's constructor; none where it has no constructor."""
    definition = ast.parse(symbols()[name].text).body[0]
    if isinstance(definition, ast.FunctionDef):
        return [argument.arg for argument in (*definition.args.posonlyargs, *definition.args.args)]
    if not isinstance(definition, ast.ClassDef):
        return []
    own = [node for node in definition.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    if own:
        return [argument.arg for argument in (*own[0].args.posonlyargs, *own[0].args.args)][1:]
    bases = [base.id for base in definition.bases if isinstance(base, ast.Name) and base.id in symbols()]
    return _parameters(bases[0]) if bases else []


def passes_on(op: Op) -> bool:
    """Whether what a call spreads (`*args`, `**options`) may go to the vendored function as it is: that has torch's parameters, and none of
    them takes what JAX spells otherwise."""
    signature = parse_signature(op.signature)
    is_vendored_as_it_is = isinstance(op.to, str) and op.to.startswith(f"vendored.{op.name.rpartition('.')[2]}(") and takes_options(op.name)
    return is_vendored_as_it_is and not signature.variadic and not {*signature.names, *signature.keyword_only} & TORCHS_OWN


def _is_ignored(argument: cst.Arg, signature: Signature) -> bool:
    return argument.keyword is not None and argument.keyword.value in DROPPED - {*signature.names}


def _with_demoted_scalar(context: Context, bound: Bound) -> Bound:
    """The arguments of a function of two, with a scalar that must not widen the other cast to the other's dtype."""
    for name, other in (("input", "other"), ("other", "input")):
        if {name, other} <= bound.values.keys() and {name, other} <= bound.sources.keys():
            if stays_narrow(context, bound.sources[name], bound.sources[other]):
                cast = context.build(narrowed(context, bound.sources[name]), x=bound.values[name], y=bound.values[other])
                return replace(bound, values={**bound.values, name: cast})
    return bound


def stays_narrow(context: Context, scalar: cst.BaseExpression, tensor: cst.BaseExpression) -> bool:
    """Whether `scalar` is a tensor without axes of a wider dtype than `tensor`, which torch then does not widen, and JAX does."""
    # Torch ranks tensors without axes below those with axes when it promotes; JAX does so only with Python numbers.
    facts = context.observed(scalar), context.observed(tensor)
    shapes = [fact.shapes if fact else () for fact in facts]
    if not all(shapes) or any(shapes[0]) or () in shapes[1]:
        return False
    if is_element_of_constant(context, scalar) and all(_of_floats(fact) for fact in facts):
        return True
    return all(_widens(a, b) for a in facts[1].dtypes for b in facts[0].dtypes) if facts[0] and facts[1] else False


def narrowed(context: Context, scalar: cst.BaseExpression) -> str:
    """The template of what `stays_narrow` says of: `x` in the dtype of `y`, where it may be a Python number too."""
    fact = context.observed(scalar)
    return "jnp.asarray({x}, {y}.dtype)" if fact is not None and {"int", "float"} & set(fact.kinds) else "{x}.astype({y}.dtype)"


def is_element_of_constant(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression is one number of a tensor that a module keeps as a plain attribute (`self.std[0]`), whose dtype no cast of the module changes."""
    model = context.cls
    match node:
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(name)) as owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]
        ):
            fact = context.observed(owner)
            plain = model is not None and context.is_self(owner.value) and context.repo.buffer(model, name) is None
            return plain and fact is not None and "tensor" in fact.kinds and set(fact.kinds) <= {"tensor", "list", "tuple"}
    return False


def _of_floats(fact: Observed | None) -> bool:
    return fact is not None and bool(fact.dtypes) and all("float" in dtype for dtype in fact.dtypes)


def changes_dtype(context: Context, op: Op, receiver: Observed | None, originals: Sequence[cst.Arg]) -> bool:
    """Whether the result of an in-place call would have another dtype than the tensor that it is written to, as far as dtypes are known."""
    receiver_dtypes = set(receiver.dtypes) if receiver else set()
    # Torch casts the result of an in-place operation back to what it is written to.
    if op.dtype:
        return receiver_dtypes != {op.dtype}
    facts = [context.observed(argument.value) for argument in originals]
    return any(_widens(a, b) for fact in facts if fact for b in fact.dtypes for a in receiver_dtypes)


def _widens(dtype: str, other: str) -> bool:
    """Whether arithmetic of these two of one kind (float, int, …) gives something else than `dtype`."""
    kinds, bits = zip(*(re.match(r"(b?float|complex|u?int|bool)(\d*)", name).groups() for name in (dtype, other)), strict=True)  # type: ignore[union-attr]
    one_kind = kinds[0].lstrip("bu") == kinds[1].lstrip("bu") and "bool" not in kinds
    return one_kind and dtype != other and int(bits[0]) <= int(bits[1])


def _template_for(op: Op, call: SourceCall) -> str:
    if call.context.at_host and op.name in EAGER and (eager := EAGER[op.name](call)):
        return eager
    if call.context.repo.is_plain and op.name in idioms() and (idiom := idioms()[op.name].to(call)):
        return idiom
    if isinstance(op.to, str):
        return op.to
    try:
        return op.to(call)
    except (
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:  # a row that does not expect this call must not stop the file
        raise Refuse(f"{op.name}: its row does not cover this call ({type(error).__name__})", "unbound-call") from error


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without the parentheses around it, which filling a template adds again where they are needed."""
    plain = (
        cst.BinaryOperation,
        cst.UnaryOperation,
        cst.Comparison,
        cst.BooleanOperation,
        cst.Call,
        cst.Name,
        cst.Attribute,
        cst.Subscript,
    )
    if node.lpar and isinstance(node, plain) and "\n" not in _MODULE.code_for_node(node):
        return node.with_changes(lpar=[], rpar=[])
    return node


def expand(context: Context, template: str, bound: Bound, name: str, torch_defaults: Mapping[str, str] | None = None) -> cst.BaseExpression:
    """Fill a template with bound arguments and the randomness reachable here. Raises `Refuse`."""
    values: dict[str, cst.BaseExpression] = dict(bound.values)
    values |= _random_values(context, template, name)
    try:
        return context.use(fill(template, values, bound.variadic, torch_defaults))
    except Missing as error:
        raise Refuse(f"{name}: argument {error} is needed", "unbound-call") from error


def _random_values(context: Context, template: str, name: str) -> Mapping[str, cst.BaseExpression]:
    values: dict[str, cst.BaseExpression] = {}
    for placeholder, make in (("rng", context.key), ("rngs", context.rngs)):
        if f"{{{placeholder}}}" in template:
            value = make()
            if value is None:
                raise Refuse(f"{name} draws random numbers where no nnx.Rngs is at hand", "randomness")
            values[placeholder] = value
    return values


def apply_layer(context: Context, layer: Layer, arguments: Sequence[cst.Arg], originals: Sequence[cst.Arg]) -> cst.BaseExpression:
    """The NNX construction for a torch layer. Raises `Refuse`."""
    if (plain := _plain_construction(context, layer, arguments, originals)) is not None:
        return plain
    if layer.to and not (_stays_object(context) and isinstance(layer.to, str) and "(" not in layer.to):
        signature = parse_signature(layer.signature)
        try:
            bound = bind(signature, arguments, originals)
        # The vendored class takes what does not bind (`*args`) as the source has it.
        except BindError:
            return _vendored_construction(context, layer, arguments, originals)
        call = SourceCall(context, signature, bound)
        template = layer.to if isinstance(layer.to, str) else layer.to(call)
        return expand(context, template, bound, layer.name, signature.defaults)
    return _vendored_construction(context, layer, arguments, originals)


def _stays_object(context: Context) -> bool:
    """Whether a layer must be a module: code that goes through the children of this class would miss a function, and a function has another class."""
    in_walked = context.cls is not None and context.cls.id in context.randomness.walked
    return in_walked or context.randomness.asked_for_class


def _plain_construction(
    context: Context, layer: Layer, arguments: Sequence[cst.Arg], originals: Sequence[cst.Arg]
) -> cst.BaseExpression | None:
    """Flax's own layer, where the repository uses this one plainly (`analysis/plain_layers/uses.py`)."""
    # A layer that is made while a module is called draws the numbers that torch's does, in torch's layout.
    constructs = context.constructing or context.function_key in context.randomness.factories
    if layer.plain is None or layer.name not in context.plain.kinds or not constructs or _is_shared(context):
        return None
    signature = parse_signature(layer.signature)
    try:
        bound = bind(signature, arguments, originals)
    except BindError:
        return None
    template = layer.plain(SourceCall(context, signature, bound))
    if not template or (_stays_object(context) and not layer.plain_class):
        return None
    return _with_entries(expand(context, template, bound, layer.name, signature.defaults))


def _with_entries(construction: cst.BaseExpression) -> cst.BaseExpression:
    """`nnx.Dict(dict(a=x))` → `nnx.Dict(a=x)`."""
    match construction:
        case cst.Call(args=[cst.Arg(value=cst.Call(func=cst.Name("dict"), args=[*entries]), keyword=None)]) if entries:
            if all(entry.keyword is not None for entry in entries):
                return construction.with_changes(args=entries)
    return construction


def _is_shared(context: Context) -> bool:
    """Whether another layer shares a variable of what is constructed here."""
    for node in reversed(context.stack):
        if isinstance(node, cst.Assign):
            targets = [target.target for target in node.targets]
            return any(isinstance(one, cst.Attribute) and one.attr.value in context.plain.shared for one in targets)
        name = node.keyword.value if isinstance(node, cst.Arg) and node.keyword else ""
        name = node.key.raw_value if isinstance(node, cst.DictElement) and isinstance(node.key, cst.SimpleString) else name
        if name in context.plain.shared:
            return True
    return False


def _vendored_construction(
    context: Context, layer: Layer, arguments: Sequence[cst.Arg], originals: Sequence[cst.Arg]
) -> cst.BaseExpression:
    plain_arguments = [new for new, old in zip(arguments, originals, strict=True) if not _idle_option(context, old)]
    call = cst.Call(context.helper(layer.vendored), tidy(plain_arguments))
    if rngs_of(layer.vendored) != "required":
        return call
    return with_rngs(context, call, layer.name)


def _idle_option(context: Context, argument: cst.Arg) -> bool:
    """A device, which JAX chooses itself, or a dtype that is always `None`."""
    name = argument.keyword.value if argument.keyword else ""
    fact = context.observed(argument.value) if name == "dtype" else None
    always_none = isinstance(argument.value, cst.Name) and argument.value.value == "None"
    return name == "device" or (name == "dtype" and (always_none or fact is None or set(fact.kinds) == {"none"}))


def with_rngs(context: Context, call: cst.Call, name: str) -> cst.Call:
    """The call with `rngs=…` added (before `**kwargs`). Raises `Refuse` where none is at hand."""
    rngs = context.rngs()
    if rngs is None:
        raise Refuse(f"{name} is constructed where no nnx.Rngs is at hand", "randomness")
    argument = keyword("rngs", rngs)
    plain = [a for a in call.args if a.star != "**"]
    spread = [a for a in call.args if a.star == "**"]
    return call.with_changes(args=tidy([*plain, argument, *spread]))


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """`name=value` as an argument."""
    bare = cst.SimpleWhitespace("")
    return cst.Arg(value, keyword=cst.Name(name), equal=cst.AssignEqual(whitespace_before=bare, whitespace_after=bare))


def is_bound_to(statement: cst.CSTNode | None, value: cst.BaseExpression) -> bool:
    """Whether a statement binds nothing but the local name that an expression is: `v = normalize(w, out=v)` the value of `out`."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return isinstance(value, cst.Name) and value.value == name
    return False


def tidy(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments with commas between them; line breaks and comments that the source had are kept."""
    plain = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    result: list[cst.Arg] = []
    for i, argument in enumerate(arguments):
        broken = isinstance(argument.comma, cst.Comma) and isinstance(argument.comma.whitespace_after, cst.ParenthesizedWhitespace)
        last = i == len(arguments) - 1
        result.append(argument if broken else argument.with_changes(comma=cst.MaybeSentinel.DEFAULT if last else plain))
    return result
