"""WGAN with gradient penalty on a ring of Gaussians."""
import math

import torch
import torch.autograd as autograd
import torch.nn as nn

n_critic = 3
lambda_gp = 10
batch_size = 32
latent_dim = 4
iterations = 6

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.model = nn.Sequential(nn.Linear(latent_dim, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))

    def forward(self, z):
        return self.model(z)


class Critic(nn.Module):
    def __init__(self):
        super(Critic, self).__init__()
        self.model = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.model(x)


def real_batch():
    k = torch.randint(0, 8, (batch_size,))
    angle = k * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(batch_size, 2)


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1)
    interpolates = (alpha * real_samples + (1 - alpha) * fake_samples).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(d_interpolates),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


generator = Generator()
critic = Critic()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))

for it in range(iterations):
    for _ in range(n_critic):
        real = real_batch()
        optimizer_D.zero_grad()
        z = torch.randn(batch_size, latent_dim)
        fake = generator(z).detach()
        penalty = compute_gradient_penalty(critic, real, fake)
        d_loss = -critic(real).mean() + critic(fake).mean() + lambda_gp * penalty
        d_loss.backward()
        optimizer_D.step()

    optimizer_G.zero_grad()
    z = torch.randn(batch_size, latent_dim)
    g_loss = -critic(generator(z)).mean()
    g_loss.backward()
    optimizer_G.step()
    print("[Iteration %d] [D loss: %f] [G loss: %f]" % (it, d_loss.item(), g_loss.item()))
