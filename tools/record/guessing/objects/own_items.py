"""Lists and dictionaries of the repository's own objects: what a constructor takes apart, and what a call looks up by their names."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.lists import constructor
from migrate_agent.tools.record.guessing.reads import OF_VALUES, Holder, handed_on
from migrate_agent.tools.record.guessing.rows import MODULES

PREFIX = r"(?:typing\.|collections\.abc\.|t\.)?"
ITEM = r"\s*['\"]?(?:\w+\.)*(\w+)['\"]?\s*"
LISTED = re.compile(rf"{PREFIX}(?:list|tuple|sequence|iterable|collection)\[{ITEM}(?:,\s*\.\.\.)?\s*\]", re.I)
MAPPED = re.compile(rf"{PREFIX}(?:dict|mapping|mutablemapping|ordereddict)\[\s*str\s*,{ITEM}\]", re.I)
TENSORS = re.compile(r"\w*Tensor")
AROUND = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "set", "zip"})
"""Functions that give the items of what they are handed."""
NAME = re.compile(r"(.*_)?(name|key|id|tag)")
FIRST_KEY, SECOND_KEY = "'a'", "'b'"
SEVERAL = (("torch.nn.Linear(64, 64)", "torch.nn.Identity()"), ("0", "1"), ("64", "64"), ("torch.add",), ("1",))
"""Argument lists of a constructor that takes any number: modules, indices, widths, a function, one number."""
SMALL = ("1", "2", "3", "4", "8", "16")


def listed_class(annotation: str) -> str:
    """`Iterable[Modality]` → `Modality`; "" of what is no list of objects of one class."""
    match = LISTED.fullmatch(annotation)
    return match[1] if match else ""


def mapped_class(annotation: str) -> str:
    """`dict[str, Modality]` → `Modality`; "" of what is no dictionary by words."""
    match = MAPPED.fullmatch(annotation)
    return match[1] if match else ""


def attributes_of_items(cls: Any, name: str) -> frozenset[str]:
    """What the constructor, and what it hands the list to, read of each item of a list: `for m in modalities: m.width`."""
    attributes: set[str] = set()
    for holder in handed_on(Holder(cls, name), 2):
        nodes = nodes_of(constructor(holder.code)) if not holder.path and constructor(holder.code) else ()
        items = {item for node in nodes for item in _items(node, holder.name)}
        attributes |= {
            node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in items
        }
    return frozenset(attributes - OF_VALUES)


def _items(node: ast.AST, name: str) -> Iterator[str]:
    """The variables that stand for the items of a name where a node goes through them."""
    if not isinstance(node, ast.For | ast.comprehension):
        return
    read, target = node.iter, node.target
    if isinstance(read, ast.Call) and isinstance(read.func, ast.Name) and read.func.id in AROUND and read.args:
        positions = [at for at, argument in enumerate(read.args) if _is(argument, name)]
        if read.func.id == "enumerate" and positions and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        elif read.func.id == "zip" and positions and isinstance(target, ast.Tuple):
            target = target.elts[positions[0]]
        read = read.args[positions[0]] if positions else read
    if _is(read, name) and isinstance(target, ast.Name):
        yield target.id


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in (name, f"self.{name}")


def lists_of(texts: Sequence[str], as_dictionary: bool = False) -> tuple[str, ...]:
    """Lists of one and of two objects that these texts build, the second under another name; or dictionaries of them."""
    lists = []
    for text in texts:
        pair = (text, _renamed(text))
        lists += [f"{{{FIRST_KEY}: {pair[0]}, {SECOND_KEY}: {pair[1]}}}"] if as_dictionary else [f"[{', '.join(pair)}]", f"[{text}]"]
    return tuple(dict.fromkeys(lists))


def several_texts(cls: type, annotation: str) -> list[tuple[str, ...]]:
    """What a constructor may take that takes as many arguments as there are: modules, numbers, a function."""
    import torch

    if issubclass(cls, (torch.nn.Sequential, torch.nn.ModuleList)) or MODULES.fullmatch(annotation):
        return [SEVERAL[0]]
    return [row for row in SEVERAL if "int" not in annotation or row[0].isdigit()]


def _renamed(text: str) -> str:
    """The construction of an object with another word where it takes a name."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.keyword)
            and NAME.fullmatch(node.arg or "")
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is str
        ):
            node.value = ast.Constant(SECOND_KEY.strip("'"))
    return ast.unparse(tree)


def other_numbers(text: str, classes: Collection[str]) -> Iterator[str]:
    """A text that builds objects of these classes, with another number in place of one that it gives them by name: alike in all of them."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return
    numbers: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes:
            numbers |= {
                keyword.arg: repr(keyword.value.value)
                for keyword in node.keywords
                if keyword.arg and isinstance(keyword.value, ast.Constant) and type(keyword.value.value) is int
            }
    for number in SMALL:
        for name, usual in numbers.items():
            if number != usual:
                yield re.sub(rf"\b{name}={usual}\b", f"{name}={number}", text)


def names_held(instance: Any) -> Sequence[tuple[str, ...]]:
    """The words by which an object holds what it looks up: keys of its dictionaries, also of modules and of parameters."""
    own = {name: value for name, value in getattr(instance, "__dict__", {}).items() if not name.startswith("_")}
    words: dict[tuple[str, ...], None] = {}
    for value in (*getattr(instance, "_modules", {}).values(), *own.values()):
        keys = tuple(value.keys()) if isinstance(value, Mapping) or type(value).__name__ in ("ModuleDict", "ParameterDict") else ()
        if keys and all(isinstance(key, str) for key in keys):
            words[keys] = None
    return tuple(words)


def reads_by_variable(called: Any, name: str) -> bool:
    """Whether code looks things up in a parameter by words that it does not spell out: `for key in data.keys(): data[key]`, `data.items()`."""
    for node in nodes_of(called) if inspect.isfunction(called) else ():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr="items" | "keys" | "values"), args=[]) if read == name:
                return True
    return False
