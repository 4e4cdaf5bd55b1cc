"""Whether importing a file runs a program: parses arguments, loads or downloads data, trains. Reads syntax only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate_agent.tools.scan.symbols import is_main

TRAINING = frozenset("backward step zero_grad fit fit_generator".split())
"""Methods that a training loop calls, and a definition does not."""
ACTING = TRAINING | frozenset(
    """parse_args parse_known_args parse_args_into_dataclasses input exit quit _exit Fire
    urlretrieve urlopen urlcleanup download download_url download_and_extract_archive load_dataset snapshot_download hf_hub_download
    from_pretrained load_state_dict_from_url read_csv read_json read_pickle imread open savefig imshow show load save loadtxt savetxt
    DataLoader SummaryWriter system makedirs mkdir rmtree Popen check_call check_output init_process_group spawn launch""".split()
)
"""Last names of calls that reach out of the program, wait for somebody or train."""
_BUILTIN = frozenset({"open", "input", "exit", "quit"})
_DOWNLOADING = frozenset({"download"})
"""Keywords that make a constructor of a data set load it from the network."""
_OF_METHODS = frozenset({"open", "load", "step", "save", "show"})


def is_script(tree: ast.Module) -> bool:
    """Whether the statements that run on import act beyond binding names; what is guarded by `__name__` does not run."""
    functions = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return any(acts(statement) or _starts(statement, functions) for statement in tree.body)


def acts(statement: ast.stmt) -> bool:
    """Whether running a top-level statement calls something that acts."""
    return not is_main(statement) and any(is_acting_call(call) for call in _calls([statement]))


def trains(statement: ast.stmt) -> bool:
    """Whether running a top-level statement trains: nothing that a class needs may be had at that price."""
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in TRAINING for call in _calls([statement]))


def _starts(statement: ast.stmt, functions: set[str]) -> bool:
    """Whether it calls a function of the file for nothing but its effect: `main()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in functions


def is_acting_call(call: ast.Call) -> bool:
    """Whether a call reaches out of the program, waits for somebody or trains, by its name."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    if any(keyword.arg in _DOWNLOADING and _is_true(keyword.value) for keyword in call.keywords):
        return True
    if isinstance(call.func, ast.Name) and name in _OF_METHODS - _BUILTIN:
        return False  # a function of the file of that name may do anything; a method of it mostly does this
    return name in ACTING


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and not node.value)


def _calls(statements: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls that run when these statements do: bodies of functions wait, and so does what is guarded by `__name__`."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [*node.decorator_list, *node.args.defaults, *(default for default in node.args.kw_defaults if default)]
        elif not isinstance(node, ast.Lambda) and not (isinstance(node, ast.stmt) and is_main(node)):
            waiting += ast.iter_child_nodes(node)
