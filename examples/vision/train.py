"""
Train one of the models to tell apart ten kinds of synthetic images (a coloured disc, at one of ten places).

    python train.py --model resnet10 --steps 100
    python train.py --model vit_micro --drop-path 0.1
    python train.py --steps 100 --stop 50 && python train.py --steps 100 --resume
"""

import argparse
import os

import torch
import torch.nn.functional as F

import vision


def make_batch(batch_size, size, generator):
    labels = torch.randint(0, 10, (batch_size,), generator=generator)
    angle = labels * (2 * torch.pi / 10)
    cx = size / 2 + size / 4 * torch.cos(angle)
    cy = size / 2 + size / 4 * torch.sin(angle)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    disc = (xx - cx[:, None, None]) ** 2 + (yy - cy[:, None, None]) ** 2 < (size / 8) ** 2
    colour = torch.rand(batch_size, 3, 1, 1, generator=generator)
    images = disc[:, None].float() * colour + 0.2 * torch.randn(batch_size, 3, size, size, generator=generator)
    return images, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet10", choices=["resnet10", "resnet_bottleneck", "vit_micro"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--drop-path", type=float, default=0.0, help="for the ViT")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--checkpoint", default="last.pt", help="what is written at the end, and read with --resume")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, if it is there")
    parser.add_argument("--stop", type=int, default=10**9, help="end before this step of --steps")
    args = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    kwargs = {"drop_path_rate": args.drop_path} if args.model.startswith("vit") else {}
    model = getattr(vision, args.model)(num_classes=10, **kwargs).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(args.steps, 1))

    start = 0
    if args.resume and os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        generator.set_state(state["generator"])
        start = state["step"]
        print(f"resumed at step {start}")

    model.train()
    for step in range(start, min(args.steps, args.stop)):
        images, labels = make_batch(args.batch_size, 32, generator)
        images, labels = images.to(args.device), labels.to(args.device)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 20 == 0 or step == args.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.4f}")

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save({**state, "generator": generator.get_state(), "step": min(args.steps, args.stop)}, args.checkpoint)

    model.eval()
    with torch.no_grad():
        images, labels = make_batch(200, 32, generator)
        accuracy = (model(images.to(args.device)).argmax(dim=1).cpu() == labels).float().mean().item()
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
