"""Semi-supervised classification with a mean teacher: an exponential moving average of the student's weights."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

EMA_DECAY = 0.95
STEPS = 12


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)


def update_ema_variables(model, ema_model, alpha, global_step):
    # Use the true average until the exponential average is more correct
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


def main():
    torch.manual_seed(3)
    centres = 2 * torch.randn(3, 8)
    y = torch.randint(0, 3, (240,))
    x = centres[y] + torch.randn(240, 8)
    labelled, unlabelled = x[:40], x[40:200]
    test_x, test_y = x[200:], y[200:]

    model = MLP()
    ema_model = copy.deepcopy(model)
    for param in ema_model.parameters():
        param.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)

    for step in range(STEPS):
        i = torch.randint(0, len(labelled), (16,))
        j = torch.randint(0, len(unlabelled), (32,))
        logits = model(labelled[i])
        class_loss = F.cross_entropy(logits, y[:40][i])
        noisy = unlabelled[j] + 0.1 * torch.randn(32, 8)
        with torch.no_grad():
            ema_logits = ema_model(unlabelled[j])
        consistency_loss = F.mse_loss(model(noisy).softmax(dim=1), ema_logits.softmax(dim=1))
        weight = min(1.0, step / 6)
        loss = class_loss + weight * consistency_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema_variables(model, ema_model, EMA_DECAY, step)

        if step % 3 == 0:
            print("step %d class_loss %.4f consistency %.5f" % (step, class_loss.item(), consistency_loss.item()))

    model.eval()
    ema_model.eval()
    with torch.no_grad():
        for name, net in [("student", model), ("teacher", ema_model)]:
            acc = (net(test_x).argmax(1) == test_y).float().mean().item()
            print(f"{name} accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
