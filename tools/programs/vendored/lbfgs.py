"""torch's LBFGS: a loop on the host around a compiled function that gives loss and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.flatten_util import ravel_pytree

Vector = np.ndarray[Any, Any]
Closure = Callable[[], tuple[Any, Any]]


class LinePoint(NamedTuple):
    """A step along a direction: its length, the loss there, the gradient (n,), and the slope along the direction."""

    t: float
    loss: float
    grad: Vector
    slope: float


class LBFGS(nnx.Optimizer[Any]):
    """`torch.optim.LBFGS` (https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html), for all parameters of a module.

    `update(model, closure)` takes a function without arguments that gives loss () and gradients at the module's parameters as they are then:
    `lambda: loss_and_grads(model, batch)`, of an `nnx.jit` of `nnx.value_and_grad`. It gives the loss before the step.
    """

    def __init__(self, model: Any, **options: Any) -> None:
        super().__init__(model, optax.identity(), wrt=nnx.Param)
        self.course = LBFGSCourse(model, **options)

    def update(self, model: Any, closure: Any, /, **kwargs: Any) -> Any:
        """One step of up to `max_iter` iterations; the parameters change in place."""
        return self.course.step(closure)


class LBFGSCourse:
    """The iterations of LBFGS, on the host, and what one of them leaves to the next. The options are those of torch."""

    def __init__(
        self,
        model: nnx.Module,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError("only 'strong_wolfe' is supported")
        self.model, self.lr, self.max_iter = model, lr, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.n_iter = 0
        self.history: list[tuple[Vector, Vector]] = []
        """Changes of gradient and steps, oldest first."""
        self.scale: Any = 1.0
        self.direction: Any = None
        self.t: float = 0.0
        self.previous: Any = None

    def step(self, closure: Closure) -> Any:
        """One step of up to `max_iter` iterations; the parameters change in place."""
        first, grad = self._evaluate(closure)
        loss, evaluations = float(first), 1
        if np.abs(grad).max() <= self.tolerance_grad:
            return first
        for iteration in range(1, self.max_iter + 1):
            self.n_iter += 1
            self._turn(grad)
            before, self.previous = loss, grad
            self.t = min(1.0, 1.0 / float(np.abs(grad).sum())) * self.lr if self.n_iter == 1 else self.lr
            slope = float(grad @ self.direction)
            if slope > -self.tolerance_change:
                break
            start = self._parameters()
            if self.line_search_fn is not None:
                origin = LinePoint(0.0, loss, grad, slope)
                point, used = self._search(closure, start, origin, self.max_eval - evaluations)
                self.t, loss, grad = point.t, point.loss, point.grad
                self._put(start + self.t * self.direction)
            else:
                self._put(start + self.t * self.direction)
                used = 0
                # The loss after the last iteration is not asked for: the next step asks first.
                if iteration != self.max_iter:
                    value, grad = self._evaluate(closure)
                    loss, used = float(value), 1
            evaluations += used
            if evaluations >= self.max_eval or np.abs(grad).max() <= self.tolerance_grad:
                break
            if np.abs(self.direction * self.t).max() <= self.tolerance_change or abs(loss - before) < self.tolerance_change:
                break
        return first

    def _turn(self, grad: Vector) -> None:
        """Take the last step into the history, and choose the next direction: the gradient times the approximate inverse Hessian."""
        if self.n_iter == 1:
            self.direction = -grad
            return
        change, moved = grad - self.previous, self.direction * self.t
        curvature = change @ moved
        if curvature > 1e-10:
            self.history = [*self.history, (change, moved)][-self.history_size :]
            self.scale = curvature / (change @ change)
        vector, weights = -grad, []
        for change, moved in reversed(self.history):
            weights.append((moved @ vector) / (change @ moved))
            vector = vector - weights[-1] * change
        vector = vector * self.scale
        for (change, moved), weight in zip(self.history, reversed(weights), strict=True):
            vector = vector + moved * (weight - (change @ vector) / (change @ moved))
        self.direction = vector

    def _search(self, closure: Closure, start: Vector, origin: LinePoint, most: int) -> tuple[LinePoint, int]:
        used = 0

        def at(t: float) -> LinePoint:
            nonlocal used
            used += 1
            self._put(start + t * self.direction)
            loss, grad = self._evaluate(closure)
            return LinePoint(t, float(loss), grad, float(grad @ self.direction))

        smallest = self.tolerance_change / float(np.abs(self.direction).max())
        return strong_wolfe(at, origin, self.t, smallest, most), used

    def _parameters(self) -> Vector:
        return np.asarray(ravel_pytree(nnx.state(self.model, nnx.Param))[0])

    def _put(self, vector: Vector) -> None:
        nnx.update(self.model, ravel_pytree(nnx.state(self.model, nnx.Param))[1](jnp.asarray(vector)))

    def _evaluate(self, closure: Closure) -> tuple[Any, Vector]:
        loss, grads = closure()
        return loss, np.asarray(ravel_pytree(grads)[0])


def strong_wolfe(at: Callable[[float], LinePoint], origin: LinePoint, t: float, smallest: float, most: int) -> LinePoint:
    """A point along a direction that satisfies the strong Wolfe conditions, or the best that `most` trials find (Nocedal and Wright, chapter 3.5).

    `at` evaluates a step length, `t` is the first one tried, and an interval shorter than `smallest` is not divided.
    """
    bracket, tries = _bracket(at, origin, t, most)
    if len(bracket) == 1:
        return bracket[0]
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stalled = False
    while tries < most and abs(bracket[1].t - bracket[0].t) >= smallest:
        t, stalled = _within(cubic_minimum(bracket[0], bracket[1]), bracket, stalled)
        point = at(t)
        tries += 1
        if _too_high(point, origin) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if _flat(point, origin):
            return point
        if point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low]


def _bracket(at: Callable[[float], LinePoint], origin: LinePoint, t: float, most: int) -> tuple[list[LinePoint], int]:
    """Two points with one that fits between them, or one that fits; and how many trials beyond the first that took."""
    before, point, tries = origin, at(t), 0
    while tries < most:
        if _too_high(point, origin) or (tries > 1 and point.loss >= before.loss):
            return [before, point], tries
        if _flat(point, origin):
            return [point], tries
        if point.slope >= 0:
            return [before, point], tries
        t = cubic_minimum(before, point, (point.t + 0.01 * (point.t - before.t), point.t * 10))
        before, point, tries = point, at(t), tries + 1
    return [origin, point], tries


def _too_high(point: LinePoint, origin: LinePoint) -> bool:
    return point.loss > origin.loss + 1e-4 * point.t * origin.slope


def _flat(point: LinePoint, origin: LinePoint) -> bool:
    return abs(point.slope) <= -0.9 * origin.slope


def _within(t: float, bracket: list[LinePoint], stalled: bool) -> tuple[float, bool]:
    """A trial that does not stay near an end of the bracket twice, and whether this one is near."""
    first, last = sorted(point.t for point in bracket)
    margin = 0.1 * (last - first)
    if min(last - t, t - first) >= margin:
        return t, False
    if stalled or t >= last or t <= first:
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
    return t, True


def cubic_minimum(a: LinePoint, b: LinePoint, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points and their slopes is least, within the bounds; their middle where it has no minimum."""
    first, last = bounds or (min(a.t, b.t), max(a.t, b.t))
    left, right = (a, b) if a.t <= b.t else (b, a)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (first + last) / 2
    d2 = math.sqrt(square)
    t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(t, first), last)
