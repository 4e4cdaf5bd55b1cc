"""
Train a character-level GPT on a tiny text and print a sample.

    python train.py --steps 200
    python train.py --input my.txt --device cuda
    python train.py --steps 200 --stop 100 && python train.py --steps 200 --resume
"""

import argparse
import math
import os
import time

import torch

from model import GPT, GPTConfig

# The opening of Moby-Dick (1851, public domain)
TEXT = """Call me Ishmael. Some years ago - never mind how long precisely - having little or no money in my purse,
and nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the
world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find myself growing grim
about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself involuntarily pausing before
coffin warehouses, and bringing up the rear of every funeral I meet; and especially whenever my hypos get such an upper
hand of me, that it requires a strong moral principle to prevent me from deliberately stepping into the street, and
methodically knocking people's hats off - then, I account it high time to get to sea as soon as I can.
"""


def get_batch(data, block_size, batch_size, device):
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    return x.to(device), y.to(device)


def get_lr(step, args):
    # linear warm-up, then a cosine down to a tenth
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    ratio = (step - args.warmup) / max(1, args.steps - args.warmup)
    return args.lr * (0.1 + 0.45 * (1.0 + math.cos(math.pi * ratio)))


@torch.no_grad()
def estimate_loss(model, data, args):
    model.eval()
    losses = torch.zeros(args.eval_batches)
    for k in range(args.eval_batches):
        x, y = get_batch(data, args.block_size, args.batch_size, args.device)
        _, loss = model(x, y)
        losses[k] = loss.item()
    model.train()
    return losses.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", help="text file (default: a built-in paragraph)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--block-size", type=int, default=64)
    parser.add_argument("--n-layer", type=int, default=4)
    parser.add_argument("--n-head", type=int, default=4)
    parser.add_argument("--n-embd", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--grad-clip", type=float, default=1.0)
    parser.add_argument("--eval-every", type=int, default=20)
    parser.add_argument("--eval-batches", type=int, default=4)
    parser.add_argument("--sample", type=int, default=100, help="characters to print at the end")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--checkpoint", default="last.pt", help="what is written at the end, and read with --resume")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, if it is there")
    parser.add_argument("--stop", type=int, default=10**9, help="end before this step of --steps")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = open(args.input).read() if args.input else TEXT
    chars = sorted(set(text))
    stoi = {ch: i for i, ch in enumerate(chars)}
    data = torch.tensor([stoi[ch] for ch in text], dtype=torch.long)
    n = int(0.8 * len(data))
    train_data, val_data = data[:n], data[n:]

    config = GPTConfig(
        block_size=args.block_size,
        vocab_size=len(chars),
        n_layer=args.n_layer,
        n_head=args.n_head,
        n_embd=args.n_embd,
        dropout=args.dropout,
    )
    model = GPT(config).to(args.device)
    print(f"{model.num_params() / 1e6:.2f}M parameters")

    # no weight decay on biases and norms
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": args.weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95))

    start_step = 0
    if args.resume and os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        start_step = state["step"]
        print(f"resumed at step {start_step}")

    model.train()
    t0 = time.time()
    for step in range(start_step, min(args.steps, args.stop)):
        lr = get_lr(step, args)
        for group in optimizer.param_groups:
            group["lr"] = lr

        x, y = get_batch(train_data, args.block_size, args.batch_size, args.device)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        if step % args.eval_every == 0 or step == args.steps - 1:
            val_loss = estimate_loss(model, val_data, args)
            print(f"step {step}: loss {loss.item():.4f}, val {val_loss:.4f}, lr {lr:.2e} ({time.time() - t0:.1f}s)")

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    torch.save({**state, "step": min(args.steps, args.stop)}, args.checkpoint)

    model.eval()
    start = torch.zeros((1, 1), dtype=torch.long, device=args.device)
    out = model.generate(start, args.sample, top_k=1)[0].tolist()
    print("".join(chars[i] for i in out))


if __name__ == "__main__":
    main()
