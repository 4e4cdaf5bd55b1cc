"""The candidate in its real configuration by abstract evaluation: shapes and dtypes, and no numbers. Runs inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from migrate_agent.tools.harness.common import trees
from migrate_agent.tools.harness.jax_side.module import described_state, is_leaf, make_namespace, split
from migrate_agent.tools.harness.jax_side.precision import tracers_as_data
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.verify.candidate.session import Session


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: those of a native job with one scenario, and `full`, the example's texts with the real configuration as `init`.

    Gives, as `spec`, what `original.full_size.run` gives but the number of parameters; or `error`, where it cannot be constructed.
    """
    session = Session(arguments, inputs, output, exact=False)
    scenario, texts = session.requests[0], arguments["full"]
    try:
        candidate = session.candidate(scenario.example)
        namespace = make_namespace(_module(candidate), texts, inputs.get(f"tensors{scenario.example}"), exact=False)
        init = compile(f"_unit({texts['init']}\n)", "<full of the example>", "eval")
        with tracers_as_data():
            model = nnx.eval_shape(lambda: eval(init, {**namespace, "_unit": candidate.cls, "rngs": nnx.Rngs(0)}))
        state = described_state(model)
    except Exception as error:
        return {"spec": {}, "error": session.fail(error)["error"]}
    try:
        return {"spec": {}, "state": state, "outputs": _outputs(session, model)}
    except Exception as error:
        return {"spec": {}, "state": state, "no_outputs": session.fail(error)["error"]}


def _module(candidate: Any) -> Any:
    import importlib

    return importlib.import_module(candidate.cls.__module__)


def _outputs(session: Session, model: Any) -> list[list[Any]]:
    """Shape and dtype of each array that an evaluation pass on the example's arguments gives. Raises the errors of the candidate."""
    scenario = session.requests[0]
    model.eval()
    graphdef, trainable, rest = split(model)
    options: dict[str, Any] = {"gradient": False, "paired": False, "method": session.method(scenario)}
    program = Program(graphdef, session.tree(scenario), session.programs.renamed, session.draws, **options)

    def step(trainable: Any, rest: Any, leaves: Any) -> list[Any]:
        outputs: list[Any] = []
        trees.encode(program.call(nnx.merge(graphdef, trainable, rest, copy=True), leaves)[0], outputs, is_leaf)
        return [value.get_value() if isinstance(value, nnx.Variable) else value for value in outputs]

    shapes = jax.eval_shape(step, trainable, rest, session.leaves(scenario)[0])
    return [[list(shape.shape), str(shape.dtype)] for shape in shapes]
