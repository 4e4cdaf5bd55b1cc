"""Mutants that are the same program: what jax traces is equal, so that no input of these shapes tells them apart.

Compared are the signatures, the state with its kinds, two sets of initial values, and what is traced in both modes for each example and
all shapes that the verifier would try. The changed text must have been run, and hold no condition: else other inputs may tell. This is
what compilers do for mutants in other languages (trivial compiler equivalence).
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.evals.mutation.parity_first import ParityFirst, Point, alarm
from migrate_agent.tools.harness.common import input_sampling
from migrate_agent.tools.harness.jax_side.module import is_key, split

CONDITION = re.compile(r"\b(if|elif|else|while|and|or|assert|try|except)\b")
SEEDS = (0, 1)


class SameProgram:
    """The traced programs of a target at the time of construction."""

    def __init__(self, parity: ParityFirst) -> None:
        self.parity = parity
        self.text = parity.target.file.read_text(encoding="utf-8")
        self.plain, self.ran = self._programs()
        self.runs_it = False
        """Whether a changed line ran in the last call of `holds`."""

    def holds(self) -> bool:
        """Whether the present text of the target's file traces to the same programs."""
        changed = changed_lines(self.text, text := self.parity.target.file.read_text(encoding="utf-8"))
        lines = text.splitlines()
        self.runs_it = False
        # A condition may take its other branch for inputs that are not traced here.
        if not self.plain or any(CONDITION.search(lines[number - 1]) for number in changed):
            return False
        programs, ran = self._programs()
        self.runs_it = bool(changed & ran)
        return programs == self.plain

    def _programs(self) -> tuple[list[str], set[int]]:
        """All compared facts as text, and the lines of the target's file that ran; no facts where the code raises."""
        with self.parity.paths(), alarm(), warnings.catch_warnings(), _lines(str(self.parity.target.file)) as ran:
            warnings.simplefilter("ignore")
            try:
                self.parity.forget()
                return [text for point in self._examples() for text in self._texts(point)], ran
            except (Exception, SystemExit):
                return [], ran

    def _examples(self) -> list[Point]:
        """A call of each example."""
        return list({id(point.original): point for point in self.parity.calls if not point.targets}.values())

    def _texts(self, point: Point) -> Iterator[str]:
        for seed in SEEDS:
            model = self.parity.build(point, nnx.Rngs(seed))
            yield from (str(inspect.signature(method)) for method in (type(model).__init__, type(model).__call__))
            for path, value in nnx.to_flat_state(nnx.state(model)):
                content = value.get_value() if isinstance(value, nnx.Variable) else value
                yield f"{path} {type(value).__name__} {_content(content)}"
        variants = [variant.values for variant in input_sampling.shape_variants(point.original.leaves, 0)]
        for mode in ("eval", "train"):
            for values in ([*point.values], *variants):
                yield self._trace(point, mode, values)

    def _trace(self, point: Point, mode: str, values: Sequence[Any]) -> str:
        model = self.parity.build(point, nnx.Rngs(0))
        model.train() if mode == "train" else model.eval()
        _, trainable, rest = split(model)
        program, backward = self.parity.program(point, model, gradient=False), self.parity.program(point, model, gradient=True)
        step_arguments = (trainable, rest, self.parity.leaves(point, values))
        try:
            outputs = jax.eval_shape(program.candidate_step, *step_arguments, {})[1]
            targets = {str(number): jnp.zeros(out.shape, out.dtype) for number, out in enumerate(outputs) if is_float(out)}
            traced = jax.make_jaxpr((backward if targets else program).candidate_step)(*step_arguments, targets)
        except Exception as error:
            return type(error).__name__
        return f"{traced.jaxpr} {[_content(value) for value in traced.consts]} {program.traced.tree} {program.rearranged}"


def same_for_all(programs: Sequence[SameProgram]) -> bool:
    """Whether all programs that need a changed file are the same as before, and one of them runs a changed line."""
    return all(program.holds() for program in programs) and any(program.runs_it for program in programs)


def is_float(value: Any) -> bool:
    """Whether the values are real or complex numbers."""
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _content(value: Any) -> str:
    if is_key(value):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return f"{array.dtype} {array.shape} {hash(array.tobytes())}"


def changed_lines(before: str, after: str) -> set[int]:
    """Numbers of the lines of `after` that are not in `before`."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {line + 1 for tag, _, _, start, stop in matcher.get_opcodes() if tag != "equal" for line in range(start, stop)}


@contextlib.contextmanager
def _lines(file: str) -> Iterator[set[int]]:
    """The lines of this file that run."""
    ran: set[int] = set()

    def note(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        ran.add(frame.f_lineno)
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield ran
    finally:
        sys.settrace(before)
