"""What becomes of training scripts, as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.programs.forms import FORMS
from tests.tools.programs.scripts import TRAIN, body_of, rewritten

LOOP = """\
def loss_fn(model, x, y):
    logits = model(x)
    loss = cross_entropy(logits, y)
    return loss, logits


@nnx.jit(donate_argnames=("model", "optimizer"))
def train_step(model, optimizer, x, y):
    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    optimizer.update(model, grads)
    return loss, logits


for step in range(6):
    index = default_generator.randint(0, len(inputs), (8,))
    x, y = inputs[index], targets[index]
    # the usual four lines
    loss, logits = train_step(model, optimizer, x, y)
    if step % 2 == 0:
        accuracy = jnp.mean((jnp.argmax(logits, axis=1) == y).astype(jnp.float32))
        print(f"step {step} loss {loss.item():.4f} accuracy {accuracy.item():.3f}")
"""


def test_the_step_is_taken_out_of_the_loop(tmp_path: Path) -> None:
    """The differentiated core moves; all else stays where it was."""
    draft = rewritten(TRAIN, tmp_path)
    assert draft.holes == ()
    assert LOOP in draft.files["train_jax.py"]
    assert "optimizer = nnx.Optimizer(model, optax.adam(1e-2, b1=0.9, b2=0.999, eps=1e-8), wrt=nnx.Param)" in body_of(draft)


def test_a_script_in_a_package_names_it(tmp_path: Path) -> None:
    """It is run by its path, where relative imports fail."""
    text = rewritten(TRAIN, tmp_path, "run/train.py").files["run_jax/train.py"]
    assert "from run_jax.nnx_layers import" in text
    assert "from ." not in text


def test_losses_in_a_list_are_part_of_the_loss(tmp_path: Path) -> None:
    """The list begins anew in each step."""
    text = TRAIN.replace("    # the usual four lines\n", "    losses = []\n").replace(
        "    loss = F.cross_entropy(logits, y)\n",
        "    for part, label in zip(logits.chunk(2), y.chunk(2)):\n        losses.append(F.cross_entropy(part, label))\n"
        "    loss = torch.stack(losses).mean()\n",
    )
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert "def loss_fn(model, x, y):\n    losses = []\n    logits = model(x)\n    for part, label in zip(" in draft.files["train_jax.py"]
    assert "    loss, logits = train_step(model, optimizer, x, y)\n" in draft.files["train_jax.py"]


def test_a_scheduler_is_the_helper_of_its_name(tmp_path: Path) -> None:
    """Also where the script imports it by that name."""
    text = TRAIN.replace("\nfor step", "scheduler = ReduceLROnPlateau(optimizer, patience=1)\n\nfor step")
    text = text.replace("import torch\n", "import torch\nfrom torch.optim.lr_scheduler import ReduceLROnPlateau\n", 1)
    draft = rewritten(text.replace("    optimizer.step()\n", "    optimizer.step()\n    scheduler.step(loss.item())\n"), tmp_path)
    assert draft.holes == ()
    assert "scheduler = ReduceLROnPlateau(optimizer, patience=1)" in draft.files["train_jax.py"]


def test_a_device_is_shown_where_it_becomes_text(tmp_path: Path) -> None:
    """A function that is handed it takes none."""
    text = TRAIN.replace("model = Net()\n", "device = torch.device('cpu')\nmodel = Net().to(device)\n")
    text += "\n\ndef count(device):\n    return len(inputs)\n\n\nprint(device, count(device))\n"
    assert "print(jax.default_backend(), count(None))" in rewritten(text, tmp_path).files["train_jax.py"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("    optimizer.step()\n", "    print(model.fc1.weight.grad.norm())\n    optimizer.step()\n"), "gradients or the optimizer"),
        (("Adam(model.parameters()", "Adam([model.fc1.weight]"), "other parameters"),
        # The update would come before what leaves it out.
        (
            ("    optimizer.zero_grad()\n", "    if torch.isnan(loss):\n        continue\n    optimizer.zero_grad()\n"),
            "goes on without the step",
        ),
        (
            ("    optimizer.zero_grad()\n", "    if not loss.item() < 1e6:\n        break\n    optimizer.zero_grad()\n"),
            "goes on without the step",
        ),
        (
            ("    loss = F.cross", "    if logits.mean() > 9:\n        logits = 2 * logits\n        continue\n    loss = F.cross"),
            "goes on without the step",
        ),
        # What is skipped adds up for the next step.
        (("    optimizer.step()\n", "    if step % 2:\n        continue\n    optimizer.step()\n"), "goes on without the step"),
    ],
)
def test_what_is_not_understood_is_a_hole(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    """Nothing is dropped in silence: there are no files then, and the hole says why."""
    draft = rewritten(TRAIN.replace(*change), tmp_path)
    assert not draft.files
    assert reason in " ".join(hole.reason for hole in draft.holes)


@pytest.mark.ci
def test_holes_where_no_run_came_become_errors(tmp_path: Path) -> None:
    """They hold nothing up, and `torch.compile` goes."""
    more = "import os\nif 'RANK' in os.environ:\n    torch.distributed.init_process_group()\n"
    more += "if 'FAST' in os.environ:\n    model = torch.compile(model)\n"
    draft = rewritten(TRAIN.replace("\nfor step", more + "\nfor step", 1), tmp_path)
    assert not draft.holes
    assert "raise NotImplementedError(\"not migrated, since no run came here: 'RANK' in os.environ\")" in body_of(draft)
    assert "compile" not in body_of(draft).replace("nnx.jit", "")
    assert any("no run of [[program]] comes here" in note for note in draft.notes)


def test_gradients_add_up_where_nothing_sets_them_to_zero(tmp_path: Path) -> None:
    """As they do in torch: the update has its own function then."""
    body = body_of(rewritten(TRAIN.replace("    optimizer.zero_grad()\n", ""), tmp_path))
    assert body.count("zero_gradients(model)") == 1
    assert "grads, loss, logits = accumulate(model, grads, x, y)" in body
    assert "apply_gradients(model, optimizer, grads)" in body


def test_a_multiple_of_the_loss_has_no_name_of_its_own(tmp_path: Path) -> None:
    """The loss that the script goes on with is a further value of the step."""
    text = rewritten(TRAIN.replace("    loss.backward()\n", "    (loss / 2).backward()\n"), tmp_path).files["train_jax.py"]
    assert "(_, (logits, loss)), grads = nnx.value_and_grad(" in text
    assert "loss, (" not in text.partition("nnx.value_and_grad")[0].rpartition("def train_step")[2]


PARTS = {
    "compared": (
        "def loss_fn(net, b_x, b_y):\n    output = net(b_x)\n    return loss_func(output, b_y)",
        "opt_Momentum = nnx.Optimizer(net_Momentum, optax.sgd(LR, momentum=0.8), wrt=nnx.Param)",
        "loss = train_step(net, opt, b_x, b_y)\n                l_his.append(loss.item())",
    ),
    "joint": (
        "(encoder_grads, decoder_grads), _ = clip_grad_norm((encoder_grads, decoder_grads), 0.5)",
        "loss = train_encoder_and_decoder(encoder, decoder, encoder_optimizer, decoder_optimizer, x)",
    ),
    "own_optimizer": (
        "def act(model, state, epsilon=0.1):",
        "def batch(kept):\n    states, actions, rewards = [], [], []",
        "s, a, r = batch(kept)\n    for _ in range(2):\n        loss = train_step(model, optimizer, s, a, r)",
        "kept = SimpleNamespace(data=[])",
    ),
    "parted": (
        "(loss_D, fake), grads = nnx.value_and_grad(netD_loss, has_aux=True)(netD, netG, noise, real)",
        "self.loss_G, self.fake = train_netG(self.netG, self.optimizer_G, self.netD, self.noise)",
    ),
    "closure": (
        "@nnx.jit\ndef loss_and_grads(model, points):\n    return nnx.value_and_grad(loss_fn)(model, points)",
        "loss, grads = loss_and_grads(model, points)",
        "loss = optimizer.update(model, closure)",
    ),
    "classification": ("def loss_fn(model, data, target):", "loss = train_step(model, optimizer, data, target)", "RateSchedule(optimizer"),
    "autoencoder": ("recon_batch, mu, logvar = model(data)\n    return loss_function(recon_batch, data, mu, logvar)",),
    "adversarial": (
        "fake = nnx.clone(netG)(noise)",
        "return errD_real + errD_fake, (output, errD_real, errD_fake, D_x)",
        "train_netD(\n            netD, optimizerD, netG, real_cpu, label, noise\n        )\n        D_x = D_x.item()",
        "errG, fake, output = train_netG(netG, optimizerG, netD, noise, label)",
    ),
    "adversarial_generator_first": (
        "g_loss, gen_imgs = train_generator(generator, optimizer_G, discriminator, z, valid)",
        "d_loss = train_discriminator(discriminator, optimizer_D, real_imgs, valid, gen_imgs, fake)",
    ),
    "language_model": ("loss, hidden = train_step(model, optimizer, data, hidden, targets)", "set_hyperparameter(optimizer, lr)"),
    "averaged": (
        "grads, loss = accumulate(model, grads, x, y)",
        "nnx.update(\n        ema_model,\n        jax.tree.map(\n            lambda p, ema_p: ema_p * decay + (1 - decay) * p,",
    ),
    "deep_q": ("loss = train_step(q, optimizer, q_target, s, a, s_prime, r, done_mask)", "load_object_state(q_target, object_state(q))"),
    "one_cycle": ("def update_step(model, optimizer, x, y):", "def compute_loss(model, x, y):", "b1=one_cycle_momentum("),
    "fine_tuning": (
        'wrt=nnx.All(nnx.Param, lambda path, _: path[0] != "backbone"),',
        'argnums=nnx.DiffState(0, nnx.All(nnx.Param, lambda path, _: path[0] != "backbone"))',
    ),
    "phases": (
        "                loss, outputs = train_step(model, optimizer, inputs, targets)\n",
        "                outputs = eval_step(model, inputs)\n",
        '"fc": lambda count: 1e-2 * 0.9**count, "block": lambda count: 1e-4 * 0.9**count',
        'label_parameters(lambda name, p: "fc" if name.startswith("fc.") else "block")',
    ),
    "by_hand": (
        "optax.sgd(learning_rate))(learning_rate=args.lr)",
        "set_hyperparameter(optimizer, lr)",
        'write_checkpoint(object_state(model), "model.pt")',
    ),
    "gradient_penalty": (
        "def compute_gradient_penalty(D, real_samples, fake_samples, alpha):",
        "d_interpolates, pull_back = jax.vjp(D, interpolates)",
        "alpha = default_generator.rand(real.shape[0], 1)\n        d_loss = train_critic(critic, optimizer_D, generator, z, real, alpha)",
    ),
    "two_optimizers_on_one_loss": ('static_argnames=("use_teacher_forcing",),', "    loss = 0\n    _, decoder_hidden = encoder(source)"),
    "two_views": ("x1 = x + 0.1 * default_generator.randn(*x.shape)",),
    "two_training_functions": (
        "loss = update_teacher(teacher, optimizer, xb, yb)",
        "    def student_loss(student, teacher, xb, yb):",
        "loss = update_student(student, optimizer, teacher, xb, yb)",
    ),
    "resumed": ('    load_object_state(optimizer, state["optimizer"])', '    default_generator.set_state(state["rng"])'),
    "trainer": (
        "def train_step(model, optimizer, x, y, criterion, clip):",
        "loss = train_step(self.model, self.optimizer, x, y, self.criterion, self.args.clip)",
    ),
    "episodes": (
        "def compute_log_prob(policy, state, action):",
        "    action = default_generator.categorical(m.probs)",
        "    saved_log_probs.append((draws, state, action))",
        "    values = replay(compute_log_prob, policy, episode)",
        "    policy_loss = jax.vmap(compute_loss)(values, returns)",
        "    episode = stack_records(saved_log_probs)",
        "    train_step(policy, optimizer, episode, returns)",
    ),
    "actor_critic": (
        "            entropies.append((draws, state))",
        "    values = squeeze(jnp.stack(replayed_values), -1)",
        "def train_step(net, optimizer, value_records, returns, log_prob_records, entropy_records):",
    ),
    "memory": (
        "    action = dist.loc + dist.scale * default_generator.randn(*dist.loc.shape)",
        "    memory.log_probs.append((draws, x, action))",
        "    episode = stack_records(memory.log_probs)",
    ),
    "agent": (
        "        probs = eval_step(self.policy, state)",
        "        self.log_probs.append((draws, state, action))",
        "        loss = train_step(self.policy, self.optimizer, log_prob_records, returns)",
    ),
    "returned": (
        "    return action.item(), (draws, state, action), (draws, state)",
        "    loss = train_step(policy, optimizer, log_prob_records, entropy_records, returns)",
    ),
    "loaded_arrays": ("    for x, y in loader:", "        loss = train_step(model, optimizer, x, y)"),
}


QUICK = ("adversarial", "trainer")
"""What exercises most; each form takes a few seconds."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.ci) for name in sorted(FORMS)])
def test_forms_of_scripts(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form is rewritten without holes, and its steps are as an engineer would write them."""
    monkeypatch.chdir(tmp_path)
    draft = rewritten(FORMS[name], tmp_path)
    assert draft.holes == ()
    assert [part for part in PARTS[name] if part not in draft.files["train_jax.py"]] == []
