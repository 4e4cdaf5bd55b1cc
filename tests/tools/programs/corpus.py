"""A training script with its usual parts, and single mistakes in its rewrite: (name, old text, new text)."""

from __future__ import annotations

SCRIPT = '''\
"""Train a small network on random points."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n_in, n_hidden, n_out, dropout):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.norm = nn.BatchNorm1d(n_hidden)
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.norm(self.fc1(x)))))


def get_lr(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    ratio = (step - args.warmup) / max(1, args.steps - args.warmup)
    return args.lr * 0.5 * (1.0 + math.cos(math.pi * ratio))


@torch.no_grad()
def evaluate(model, inputs, targets, batch_size):
    model.eval()
    total, correct = 0.0, 0
    for start in range(0, len(inputs), batch_size):
        x, y = inputs[start : start + batch_size], targets[start : start + batch_size]
        logits = model(x)
        total += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=1) == y).sum().item()
    model.train()
    return total / len(inputs), correct / len(inputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--grad-clip", type=float, default=0.5)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()

    torch.manual_seed(1)
    inputs = torch.randn(100, 10)
    targets = (inputs @ torch.randn(10, 3)).argmax(dim=1)
    train_x, train_y, val_x, val_y = inputs[:70], targets[:70], inputs[70:], targets[70:]

    model = Net(10, 16, 3, 0.1).to(args.device)
    # no weight decay on biases and norms
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    model.train()
    running = 0.0
    for step in range(args.steps):
        # the rate for this step
        lr = get_lr(step, args)
        for group in optimizer.param_groups:
            group["lr"] = lr

        index = torch.randint(0, len(train_x), (16,))
        x, y = train_x[index].to(args.device), train_y[index].to(args.device)
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        running += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        if step % 4 == 0:
            val_loss, accuracy = evaluate(model, val_x, val_y, 20)
            print(f"step {step} lr {lr:.5f} loss {loss.item():.4f} norm {norm:.4f} val {val_loss:.4f} accuracy {accuracy:.3f}")
    print(f"mean loss {running / args.steps:.4f}")


if __name__ == "__main__":
    main()
'''

WRONG: tuple[tuple[str, str, str], ...] = (
    ("the default decay of optax", "weight_decay=0.1,", ""),
    ("decay on biases", "mask=lambda params: jax.tree.map(lambda p: p.ndim >= 2, params),", ""),
    ("L2 in place of decoupled decay", "optax.adamw(", "l2_adam("),
    ("eps inside the root", "eps=1e-8,", "eps=0.0, eps_root=1e-16,"),
    ("another eps", "eps=1e-8,", "eps=1e-7,"),
    ("the default beta2", "b2=0.95", "b2=0.999"),
    ("rate one step ahead", "get_lr(step, args)\n        set", "get_lr(step + 1, args)\n        set"),
    ("rate never set", "set_hyperparameter(optimizer, lr)", "pass"),
    ("rate set after the step", "set_hyperparameter(optimizer, lr)\n", "set_hyperparameter(optimizer, get_lr(max(step - 1, 0), args))\n"),
    ("cosine without warm-up", "if step < args.warmup:", "if step < 0:"),
    ("no clipping", "grads, norm = clip_grad_norm(grads, args.grad_clip)", "_, norm = clip_grad_norm(grads, args.grad_clip)"),
    ("clipping without 1e-6", "grads, norm = clip_grad_norm(grads, args.grad_clip)", "grads, norm = optax_clip(grads, args.grad_clip)"),
    ("clipping by value", "grads, norm = clip_grad_norm(grads, args.grad_clip)", "grads, norm = value_clip(grads, args.grad_clip)"),
    ("clipping after the update", "optimizer.update(model, grads)", "optimizer.update(model, jax.tree.map(lambda g: 2 * g, grads))"),
    ("dropout in evaluation", "    model.eval()\n", "    model.train()\n"),
    ("evaluation mode in training", "    model.train()\n    running = 0.0", "    model.eval()\n    running = 0.0"),
    ("evaluation on the training set", "evaluate(model, val_x, val_y, 20)", "evaluate(model, train_x, train_y, 20)"),
    ("training mode not restored", "    model.train()\n    return total", "    return total"),
    ("mean of means", 'reduction="sum").item()', 'reduction="mean").item() * 20'),
    ("last batch dropped", "range(0, len(inputs), batch_size)", "range(0, len(inputs) - batch_size + 1, batch_size)"),
    ("label smoothing lost", "CrossEntropyLoss(label_smoothing=0.1)", "CrossEntropyLoss()"),
    ("logged one step late", "if step % 4 == 0:", "if step % 4 == 1:"),
    ("gradients of two steps", "optimizer.update(model, grads)", "optimizer.update(model, grads)\n        optimizer.update(model, grads)"),
    ("loss divided", "nnx.value_and_grad(loss_fn)", "nnx.value_and_grad(lambda *a: loss_fn(*a) / 2)"),
    (
        "the norm after clipping",
        "grads, norm = clip_grad_norm(grads, args.grad_clip)",
        "grads, norm = clip_grad_norm(clip_grad_norm(grads, args.grad_clip)[0], 1e9)",
    ),
    ("another dropout rate", "10, 16, 3, 0.1", "10, 16, 3, 0.2"),
    ("momentum of batch norm", "BatchNorm1d(n_hidden, rngs=rngs)", "BatchNorm1d(n_hidden, momentum=0.9, rngs=rngs)"),
    ("eps of batch norm", "BatchNorm1d(n_hidden, rngs=rngs)", "BatchNorm1d(n_hidden, eps=1e-6, rngs=rngs)"),
    ("the same batch again", "index = default_generator.randint(0, len(train_x), (16,))", "index = jnp.arange(16)"),
    ("another permutation of draws", "default_generator.manual_seed(1)", "default_generator.manual_seed(2)"),
    ("not compiled", '@nnx.jit(donate_argnames=("model", "optimizer"))', ""),
    ("compiled again each step", '@nnx.jit(donate_argnames=("model", "optimizer"))', "@recompiled"),
    ("one line less", 'print(f"mean loss', 'str(f"mean loss'),
    ("a step less", "range(args.steps)", "range(args.steps - 1)"),
)
"""In the text of the rewrite. What they call is in `EXTRA`."""

RIGHT: tuple[tuple[str, str, str], ...] = (
    ("nothing", "", ""),
    ("another order of statements", "model.train()\n    running = 0.0", "running = 0.0\n    model.train()"),
    (
        "a comment",
        "grads, norm = clip_grad_norm(grads, args.grad_clip)",
        "grads, norm = clip_grad_norm(grads, args.grad_clip)  # by hand",
    ),
    (
        "a gradient without the loss's own function",
        "nnx.value_and_grad(loss_fn)",
        "nnx.value_and_grad(lambda m, *rest: loss_fn(m, *rest))",
    ),
    ("arguments by name", "optimizer.update(model, grads)", "optimizer.update(model=model, grads=grads)"),
)

EXTRA = """

def l2_adam(rate, b1, b2, eps, weight_decay, mask):
    return optax.chain(optax.add_decayed_weights(weight_decay, mask=mask), optax.adam(rate, b1=b1, b2=b2, eps=eps))


def optax_clip(grads, limit):
    norm = optax.global_norm(grads)
    return jax.tree.map(lambda g: g * jnp.minimum(limit / norm, 1.0), grads), norm


def value_clip(grads, limit):
    return jax.tree.map(lambda g: jnp.clip(g, -limit, limit), grads), optax.global_norm(grads)


def recompiled(function):
    return lambda *args: nnx.jit(lambda *more: function(*more))(*args)
"""
