"""Right programs in other forms, and single mistakes, in the rewrites of several forms of scripts: name, whether it is right, edits `old → new`."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A program that is made of a rewrite by edits, and whether it is right."""

    name: str
    right: bool
    edits: tuple[tuple[str, str], ...]


OPTIMIZER = "optimizer = nnx.Optimizer(model, optax.adam(1e-2, b1=0.9, b2=0.999, eps=1e-8), wrt=nnx.Param)"
GRADIENTS = "    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)\n    optimizer.update(model, grads)\n"
HEAD = '@nnx.jit(donate_argnames=("model", "optimizer"))\ndef train_step(model, optimizer, x, y):\n'
LOSS = "def loss_fn(model, x, y):\n    logits = model(x)\n    loss = cross_entropy(logits, y)\n    return loss, logits\n\n\n"
STEP = HEAD + GRADIENTS + "    return loss, logits\n"
CALL = "loss, logits = train_step(model, optimizer, x, y)"
ADAM = "optax.adam(1e-2, b1=0.9, b2=0.999, eps=1e-8)"

FUNCTIONAL = """@jax.jit
def train_step(params, opt_state, x, y):
    def compute_loss(params):
        logits = nnx.merge(graphdef, params)(x)
        return cross_entropy(logits, y), logits

    (loss, logits), grads = jax.value_and_grad(compute_loss, has_aux=True)(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss, logits
"""
BY_OPTAX = """@nnx.jit
def train_step(model, opt_state, x, y):
    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    params = nnx.state(model, nnx.Param)
    updates, opt_state = tx.update(grads, opt_state, params)
    nnx.update(model, optax.apply_updates(params, updates))
    return opt_state, loss, logits
"""
ADAM_BY_HAND = """

def adam_by_hand(rate, b1=0.9, b2=0.999, eps=1e-8):
    def init(params):
        return jnp.zeros(()), jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)

    def update(grads, state, params=None):
        count, m, v = state
        count = count + 1
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, v, grads)
        rates = jax.tree.map(lambda m, v: -rate * (m / (1 - b1**count)) / (jnp.sqrt(v / (1 - b2**count)) + eps), m, v)
        return rates, (count, m, v)

    return optax.GradientTransformation(init, update)


"""
HALVES = """    halves = x.reshape(2, -1, *x.shape[1:]), y.reshape(2, -1)
    graphdef, params = nnx.split(model)

    def add(grads, half):
        def compute_loss(params):
            return loss_fn(nnx.merge(graphdef, params), *half)

        (loss, logits), new = jax.value_and_grad(compute_loss, has_aux=True)(params)
        return jax.tree.map(lambda g, n: g + n / 2, grads, new), (loss, logits)

    zeros = jax.tree.map(jnp.zeros_like, params)
"""
SCANNED = HALVES + "    grads, (losses, logits) = jax.lax.scan(add, zeros, halves)\n"
LOOPED = (
    HALVES
    + "    rows = []\n    grads = zeros\n    for i in range(2):\n        grads, row = add(grads, (halves[0][i], halves[1][i]))\n"
    + "        rows.append(row)\n    losses, logits = (jnp.stack(part) for part in zip(*rows, strict=True))\n"
)
FOLDED = "    loss, logits = losses.mean(), logits.reshape(-1, logits.shape[-1])\n    optimizer.update(model, grads)\n"

PLAIN: tuple[Case, ...] = (
    Case(
        "functional, by jax.jit",
        True,
        (
            (OPTIMIZER, f"graphdef, params = nnx.split(model)\ntx = {ADAM}\nopt_state = tx.init(params)"),
            (LOSS + STEP, FUNCTIONAL),
            (CALL, "params, opt_state, loss, logits = train_step(params, opt_state, x, y)"),
        ),
    ),
    Case(
        "optax without nnx.Optimizer",
        True,
        (
            (OPTIMIZER, f"tx = {ADAM}\nopt_state = tx.init(nnx.state(model, nnx.Param))"),
            (STEP, BY_OPTAX),
            (CALL, "opt_state, loss, logits = train_step(model, opt_state, x, y)"),
        ),
    ),
    Case(
        "functional with another rate",
        False,
        (
            (OPTIMIZER, f"graphdef, params = nnx.split(model)\ntx = {ADAM.replace('1e-2', '1.001e-2')}\nopt_state = tx.init(params)"),
            (LOSS + STEP, FUNCTIONAL),
            (CALL, "params, opt_state, loss, logits = train_step(params, opt_state, x, y)"),
        ),
    ),
    Case(
        "optax, whose state is not kept",
        False,
        (
            (OPTIMIZER, f"tx = {ADAM}\nopt_state = tx.init(nnx.state(model, nnx.Param))"),
            (STEP, BY_OPTAX),
            (CALL, "_, loss, logits = train_step(model, opt_state, x, y)"),
        ),
    ),
    Case(
        "Adam as a chain",
        True,
        ((ADAM, "optax.chain(optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8), optax.scale_by_learning_rate(1e-2))"),),
    ),
    Case("Adam by hand", True, (("\nmodel = Net(", ADAM_BY_HAND + "model = Net("), (ADAM, "adam_by_hand(1e-2)"))),
    Case(
        "Adam by hand without its bias",
        False,
        (("\nmodel = Net(", ADAM_BY_HAND.replace("(m / (1 - b1**count))", "m") + "model = Net("), (ADAM, "adam_by_hand(1e-2)")),
    ),
    Case("a constant schedule", True, ((ADAM, ADAM.replace("1e-2", "optax.constant_schedule(1e-2)")),)),
    Case("halves of a batch by scan", True, ((GRADIENTS, SCANNED + FOLDED),)),
    Case("halves of a batch by a loop", True, ((GRADIENTS, LOOPED + FOLDED),)),
    Case("halves of a batch that add up", False, ((GRADIENTS, SCANNED.replace("g + n / 2", "g + n") + FOLDED),)),
    Case("the second half of a batch alone", False, ((GRADIENTS, SCANNED.replace("g + n / 2", "n") + FOLDED),)),
    Case(
        "gradients alone, and the loss as a further value",
        True,
        (
            ("    return loss, logits\n\n\n@", "    return loss, (loss, logits)\n\n\n@"),
            ("(loss, logits), grads = nnx.value_and_grad(", "grads, (loss, logits) = nnx.grad("),
        ),
    ),
    Case("no memory given away", True, (('@nnx.jit(donate_argnames=("model", "optimizer"))', "@nnx.jit"),)),
    Case(
        "the loss by hand",
        True,
        (("cross_entropy(logits, y)", "-jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))"),),
    ),
    Case(
        "the loss by hand, over all classes",
        False,
        (("cross_entropy(logits, y)", "-jnp.mean(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 3))"),),
    ),
    Case(
        "lines kept, and printed at the end",
        True,
        (
            ("for step in range(6):", "lines = []\nfor step in range(6):"),
            ("        print(f", "        lines.append(f"),
            ('{accuracy.item():.3f}")\n', '{accuracy.item():.3f}")\nprint("\\n".join(lines))\n'),
        ),
    ),
    Case("the loss as a number of Python", True, (("{loss.item():.4f}", "{float(loss):.4f}"),)),
    Case("a loop by hand", True, (("for step in range(6):", "step = -1\nwhile step < 5:\n    step += 1"),)),
    Case("a batch by take", True, (("inputs[index], targets[index]", "jnp.take(inputs, index, axis=0), jnp.take(targets, index)"),)),
    Case("targets of another batch", False, (("inputs[index], targets[index]", "inputs[index], targets[jnp.roll(index, 1)]"),)),
    Case("accuracy of the batch before", False, (("jnp.argmax(logits, axis=1) == y", "jnp.argmax(logits, axis=1) == jnp.roll(y, 1)"),)),
)
"""In the rewrite of `scripts.TRAIN`."""

ADVERSARIAL: tuple[Case, ...] = (
    Case("statistics of the generator counted twice", False, (("nnx.clone(netG)(noise)", "netG(noise)"),)),
    Case("the generator's labels", False, (("jnp.full_like(label, real_label)", "jnp.full_like(label, fake_label)"),)),
    Case("the real half of the loss alone", False, (("return errD_real + errD_fake, (", "return errD_real, ("),)),
    Case("the mean of both losses", False, (("return errD_real + errD_fake, (", "return (errD_real + errD_fake) / 2, ("),)),
    Case(
        "one state for two optimizers",
        False,
        (("optimizerG = nnx.Optimizer(\n    netG,", "optimizerG = nnx.Optimizer(\n    netD,"),),
    ),
    Case("a generator with the discriminator's gradient", False, (("output = netD(fake)", "output = netD(lax.stop_gradient(fake))"),)),
)
"""In the rewrite of `examples/programs/dcgan`."""

LANGUAGE_MODEL: tuple[Case, ...] = (
    Case(
        "no hidden state is carried",
        False,
        (
            (
                "loss, hidden = train_step(model, optimizer, data, hidden, targets)",
                "loss, _ = train_step(model, optimizer, data, hidden, targets)",
            ),
        ),
    ),
    Case("the last weights in place of the best", False, (("load_object_state(model, read_checkpoint(args.save))", "pass"),)),
    Case("clipping left out", False, (("grads, _ = clip_grad_norm(grads, args.clip)", "pass"),)),
)
"""In the rewrite of `forms.LANGUAGE_MODEL`."""

AVERAGED: tuple[Case, ...] = (
    Case("the last batches dropped", False, ((" or i + 1 == len(loader)", ""),)),
    Case(
        "gradients that are not set to zero",
        False,
        (("            grads = zero_gradients(model)\n            update", "            update"),),
    ),
    Case("a loss that is not divided", False, (("cross_entropy(logits, y) / accumulation", "cross_entropy(logits, y)"),)),
    Case("an average with its weights exchanged", False, (("ema_p * decay + (1 - decay) * p", "p * decay + (1 - decay) * ema_p"),)),
    Case(
        "clipping of each batch",
        False,
        (("jax.tree.map(jnp.add, grads, new)", "jax.tree.map(jnp.add, grads, clip_grad_norm(new, 1.0)[0])"),),
    ),
    Case("clipping left out", False, (("grads, _ = clip_grad_norm(grads, 1.0)", "pass"),)),
    Case("a bound that is twice as large", False, (("clip_grad_norm(grads, 1.0)", "clip_grad_norm(grads, 2.0)"),)),
    Case("sums by another function", True, (("jax.tree.map(jnp.add, grads, new)", "jax.tree.map(lambda g, n: n + g, grads, new)"),)),
    Case(
        "an average by optax",
        True,
        (("lambda p, ema_p: ema_p * decay + (1 - decay) * p", "lambda p, ema_p: optax.incremental_update(p, ema_p, 1 - decay)"),),
    ),
)
"""In the rewrite of `forms.AVERAGED`."""

ONE_CYCLE: tuple[Case, ...] = (
    Case("a momentum that does not change", False, ((", b1=one_cycle_momentum(epochs * len(loader))", ""),)),
    Case(
        "rates an epoch at a time",
        False,
        (("        loss = train_step(x, y)\n        scheduler.step()", "        loss = train_step(x, y)\n    scheduler.step()"),),
    ),
)
"""In the rewrite of `forms.ONE_CYCLE`."""

RESUMED: tuple[Case, ...] = (
    Case("the step as a number of Python", True, (('start = state["step"]', 'start = int(state["step"])'),)),
    Case("weights that do not come back", False, (('load_object_state(model, state["model"])', "pass"),)),
    Case("moments that do not come back", False, (('load_object_state(optimizer, state["optimizer"])', "pass"),)),
    Case("the batches of a new run", False, (('default_generator.set_state(state["rng"])', "pass"),)),
    Case("steps that are counted anew", False, (('start = state["step"]', "pass"),)),
)
"""In the rewrite of `forms.RESUMED`."""

CLOSURE: tuple[Case, ...] = (
    Case("a longer step", False, (("lr=0.5", "lr=0.51"),)),
    Case("fewer iterations", False, (("max_iter=4", "max_iter=3"),)),
    Case("the points of one batch alone", False, (("grads = loss_and_grads(model, points)", "grads = loss_and_grads(model, x[:12])"),)),
    Case("a loss that is not the one of the gradients", False, (("return loss, grads", "return loss / 2, grads"),)),
    Case(
        "a step of Adam",
        False,
        (
            ("LBFGS(model, lr=0.5, max_iter=4)", "nnx.Optimizer(model, optax.adam(0.5), wrt=nnx.Param)"),
            ("optimizer.update(model, closure)", "closure()[0]; optimizer.update(model, loss_and_grads(model, points)[1])"),
            ("import jax.numpy as jnp", "import jax.numpy as jnp\nimport optax"),
        ),
    ),
    Case(
        "a closure that gives a pair",
        True,
        (
            ("loss, grads = loss_and_grads(model, points)", "pair = loss_and_grads(model, points)"),
            ("{loss.item():.5f}", "{float(pair[0]):.5f}"),
            ("return loss, grads", "return pair"),
        ),
    ),
    Case(
        # All of them twice as large would give the same steps.
        "gradients of biases that are twice as large",
        False,
        (
            ("return loss, grads", "return loss, jax.tree.map(lambda g: g if g.ndim > 1 else 2 * g, grads)"),
            ("import jax.numpy as jnp", "import jax\nimport jax.numpy as jnp"),
        ),
    ),
)
"""In the rewrite of `forms.CLOSURE`."""

EPISODES = (
    Case(
        "a loop over the steps",
        True,
        (
            (
                "    policy_loss = jax.vmap(compute_loss)(values, returns)\n",
                "    policy_loss = [compute_loss(value, R) for value, R in zip(values, returns)]\n",
            ),
        ),
    ),
    Case(
        "one call of the policy for all states",
        True,
        (
            (
                "def compute_log_prob(policy, state, action):\n    probs = policy(state)\n    m = Categorical(probs=probs)\n    return m.log_prob(action)\n\n\n",
                "",
            ),
            (
                "    values = replay(compute_log_prob, policy, episode)\n",
                "    _, state, action = episode\n"
                "    m = Categorical(probs=policy(state[:, 0]))\n"
                "    values = m.log_prob(action[:, 0])[:, None]\n",
            ),
        ),
    ),
    Case("the reward's sign", False, (("return -log_prob * R", "return log_prob * R"),)),
    Case("no discount", False, (("R = r + args.gamma * R", "R = r + R"),)),
    Case("the last reward of the episode for all", False, (("returns.appendleft(R)", "returns.appendleft(rewards[-1])"),)),
    Case("another action's probability", False, (("return m.log_prob(action)", "return m.log_prob(1 - action)"),)),
    Case(
        "returns not divided by their deviation",
        False,
        (("returns = (returns - jnp.mean(returns)) / ", "returns = (returns - jnp.mean(returns)) + 0 * "),),
    ),
    Case("deviation of a population", False, (("ddof=1", "ddof=0"),)),
    Case("mean for sum", False, (("return jnp.sum(jnp.concatenate(policy_loss))", "return jnp.mean(jnp.concatenate(policy_loss))"),)),
    Case("the likeliest action", False, (("default_generator.categorical(m.probs)", "jnp.argmax(m.probs, axis=-1)"),)),
    Case("episodes are not forgotten", False, (("    del rewards[:]\n    del saved_log_probs[:]\n", ""),)),
)
"""In the rewrite of `examples/programs/reinforce`."""

ACTOR_CRITIC = (
    Case("no detach of the advantage", False, (("lax.stop_gradient(advantage)", "advantage"),)),
    Case(
        "no gradient of the value",
        False,
        (("value_loss = jnp.mean(advantage**2)", "value_loss = jnp.mean(lax.stop_gradient(advantage) ** 2)"),),
    ),
    Case("the entropy's sign", False, (("- 0.01 * jnp.mean", "+ 0.01 * jnp.mean"),)),
    Case("states of the first step", False, (("values.append((draws, state))", "values.append((draws, env.seen() * 0))"),)),
    Case("a step late", False, (("returns.insert(0, total)", "returns.insert(0, gamma * total)"),)),
)
"""In the rewrite of `forms.ACTOR_CRITIC`."""

PARTED: tuple[Case, ...] = (
    Case("the discriminator's loss not halved", False, (("(loss_fake + loss_real) * 0.5", "(loss_fake + loss_real)"),)),
    Case("the real half alone", False, (("(loss_fake + loss_real) * 0.5", "loss_real * 0.5"),)),
    Case("the generator's score of the points", False, (("    score = netD(fake)\n", "    score = netD(lax.stop_gradient(fake))\n"),)),
    Case(
        "the generator before the discriminator",
        False,
        (
            (
                "    def optimize_parameters(self):\n",
                "    def optimize_parameters(self):\n        train_netG(self.netG, self.optimizer_G, self.netD, self.noise)\n",
            ),
        ),
    ),
    Case("one fake for both", True, (("    score = netD(lax.stop_gradient(fake))", "    score = netD(fake)"),)),
)
"""In the rewrite of `forms.PARTED`."""

JOINT: tuple[Case, ...] = (
    Case("one module is not updated", False, (("    decoder_optimizer.update(decoder, decoder_grads)\n", ""),)),
    Case(
        "clipped one by one",
        False,
        (
            (
                "(encoder_grads, decoder_grads), _ = clip_grad_norm((encoder_grads, decoder_grads), 0.5)",
                "encoder_grads, _ = clip_grad_norm(encoder_grads, 0.5)\n    decoder_grads, _ = clip_grad_norm(decoder_grads, 0.5)",
            ),
        ),
    ),
    Case("a group's own rate is lost", False, (("optax.sgd(1e-3, momentum=0.9)", "optax.sgd(5e-2, momentum=0.9)"),)),
    Case("the schedule of one alone", False, (("        lambda count: 2e-2 * 0.5 ** (count // 3), b1", "        2e-2, b1"),)),
    Case(
        "the other order",
        True,
        (
            (
                "    critic_others.update(critic, critic_grads)\n    decoder_others.update(decoder, decoder_grads)\n",
                "    moved = critic_grads, decoder_grads\n    critic_others.update(critic, moved[0])\n    decoder_others.update(decoder, moved[1])\n",
            ),
        ),
    ),
)
"""In the rewrite of `forms.JOINT`."""

OWN_OPTIMIZER: tuple[Case, ...] = (
    Case("the worst action", False, (("jnp.argmax(eval_scores(model, state))", "jnp.argmin(eval_scores(model, state))"),)),
    Case("what was kept is not forgotten", False, (("    kept.data = []\n    return", "    return"),)),
    Case("one update less", False, (("for _ in range(2):", "for _ in range(1):"),)),
    Case("the constructor's rate", False, (("optax.adam(1e-2, ", "optax.adam(1e-3, "),)),
    Case("rewards by NumPy", True, (("jnp.array(rewards)", "jnp.asarray([[r[0]] for r in rewards])"),)),
)
"""In the rewrite of `forms.OWN_OPTIMIZER`."""

COMPARED_HEAD = '@nnx.jit(donate_argnames=("net", "opt"))\ndef train_step(net, opt, b_x, b_y):\n'
COMPARED_CALL = "loss = train_step(net, opt, b_x, b_y)"
COMPARED: tuple[Case, ...] = (
    Case("as it is", True, ()),
    Case(
        "the count of steps is static",
        False,
        (
            (COMPARED_HEAD, COMPARED_HEAD.replace("b_y)", "b_y, count)").replace('"opt")', '"opt"), static_argnames="count"')),
            (COMPARED_CALL, COMPARED_CALL.replace("b_y)", "b_y, count=len(l_his))")),
        ),
    ),
    Case(
        "compiled at each step",
        False,
        (
            (COMPARED_HEAD, COMPARED_HEAD.split("\n")[1] + "\n"),
            (COMPARED_CALL, COMPARED_CALL.replace("train_step(", "nnx.jit(train_step)(")),
        ),
    ),
    Case(
        "one module's optimizer for another",
        False,
        (("nnx.Optimizer(net_Momentum, optax.sgd(LR, momentum=0.8)", "nnx.Optimizer(net_Momentum, optax.sgd(LR)"),),
    ),
)
"""In the rewrite of `forms.COMPARED`."""

CASES = {
    "compared": COMPARED,
    "joint": JOINT,
    "own_optimizer": OWN_OPTIMIZER,
    "parted": PARTED,
    "closure": CLOSURE,
    "resumed": RESUMED,
    "plain": PLAIN,
    "adversarial": ADVERSARIAL,
    "language_model": LANGUAGE_MODEL,
    "averaged": AVERAGED,
    "one_cycle": ONE_CYCLE,
    "episodes": EPISODES,
    "actor_critic": ACTOR_CRITIC,
}
