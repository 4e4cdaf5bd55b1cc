"""Training scripts in the forms that repositories have. Each trains for a few steps on random numbers and reaches all of its lines."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples" / "programs"


def example(name: str) -> str:
    """The script of an example."""
    return (EXAMPLES / name / "train.py").read_text(encoding="utf-8")


ADVERSARIAL_GENERATOR_FIRST = """\
import argparse
import os
import numpy as np

from torch.utils.data import DataLoader, TensorDataset
from torch.autograd import Variable

import torch.nn as nn
import torch

os.makedirs("images", exist_ok=True)

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=2, help="number of epochs of training")
parser.add_argument("--batch_size", type=int, default=8, help="size of the batches")
parser.add_argument("--lr", type=float, default=0.0002, help="adam: learning rate")
parser.add_argument("--b1", type=float, default=0.5)
parser.add_argument("--b2", type=float, default=0.999)
parser.add_argument("--latent_dim", type=int, default=10)
parser.add_argument("--img_size", type=int, default=8)
parser.add_argument("--channels", type=int, default=1)
parser.add_argument("--sample_interval", type=int, default=4)
opt = parser.parse_args()
print(opt)

torch.manual_seed(0)
img_shape = (opt.channels, opt.img_size, opt.img_size)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(opt.latent_dim, 16, normalize=False),
            *block(16, 32),
            nn.Linear(32, int(np.prod(img_shape))),
            nn.Tanh()
        )

    def forward(self, z):
        img = self.model(z)
        img = img.view(img.size(0), *img_shape)
        return img


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()

        self.model = nn.Sequential(
            nn.Linear(int(np.prod(img_shape)), 16),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(16, 1),
            nn.Sigmoid(),
        )

    def forward(self, img):
        img_flat = img.view(img.size(0), -1)
        validity = self.model(img_flat)

        return validity


# Loss function
adversarial_loss = torch.nn.BCELoss()

# Initialize generator and discriminator
generator = Generator()
discriminator = Discriminator()

# Configure data loader
dataloader = DataLoader(
    TensorDataset(torch.rand(32, *img_shape) * 2 - 1, torch.zeros(32)),
    batch_size=opt.batch_size,
    shuffle=True,
)

# Optimizers
optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(opt.b1, opt.b2))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(opt.b1, opt.b2))

Tensor = torch.FloatTensor

# ----------
#  Training
# ----------

for epoch in range(opt.n_epochs):
    for i, (imgs, _) in enumerate(dataloader):

        # Adversarial ground truths
        valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
        fake = Variable(Tensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)

        # Configure input
        real_imgs = Variable(imgs.type(Tensor))

        # -----------------
        #  Train Generator
        # -----------------

        optimizer_G.zero_grad()

        # Sample noise as generator input
        z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], opt.latent_dim))))

        # Generate a batch of images
        gen_imgs = generator(z)

        # Loss measures generator's ability to fool the discriminator
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)

        g_loss.backward()
        optimizer_G.step()

        # ---------------------
        #  Train Discriminator
        # ---------------------

        optimizer_D.zero_grad()

        # Measure discriminator's ability to classify real from generated samples
        real_loss = adversarial_loss(discriminator(real_imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2

        d_loss.backward()
        optimizer_D.step()

        print(
            "[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f]"
            % (epoch, opt.n_epochs, i, len(dataloader), d_loss.item(), g_loss.item())
        )

        batches_done = epoch * len(dataloader) + i
        if batches_done % opt.sample_interval == 0:
            np.save("images/%d.npy" % batches_done, gen_imgs.data[:25].numpy())
"""
"""Two optimizers; the discriminator takes what the generator's step has made."""

LANGUAGE_MODEL = '''\
import argparse
import math
import time

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description='RNN language model')
parser.add_argument('--emsize', type=int, default=12)
parser.add_argument('--nhid', type=int, default=16)
parser.add_argument('--lr', type=float, default=5.0, help='initial learning rate')
parser.add_argument('--clip', type=float, default=0.25, help='gradient clipping')
parser.add_argument('--epochs', type=int, default=3)
parser.add_argument('--batch_size', type=int, default=4)
parser.add_argument('--bptt', type=int, default=7)
parser.add_argument('--seed', type=int, default=1111)
parser.add_argument('--log-interval', type=int, default=3)
parser.add_argument('--save', type=str, default='model.pt')
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("Using device:", device)

ntokens = 20
corpus = torch.randint(0, ntokens, (400,))


def batchify(data, bsz):
    # Work out how cleanly we can divide the dataset into bsz parts.
    nbatch = data.size(0) // bsz
    # Trim off any extra elements that wouldn't cleanly fit (remainders).
    data = data.narrow(0, 0, nbatch * bsz)
    # Evenly divide the data across the bsz batches.
    data = data.view(bsz, -1).t().contiguous()
    return data.to(device)


eval_batch_size = 2
train_data = batchify(corpus[:300], args.batch_size)
val_data = batchify(corpus[300:], eval_batch_size)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.init_weights()
        self.nhid = nhid
        self.nlayers = nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return torch.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid),
                weight.new_zeros(self.nlayers, bsz, self.nhid))


model = RNNModel(ntokens, args.emsize, args.nhid, 2, 0.2).to(device)
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""

    if isinstance(h, torch.Tensor):
        return h.detach()
    else:
        return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    data = source[i:i+seq_len]
    target = source[i+1:i+1+seq_len].view(-1)
    return data, target


def evaluate(data_source):
    # Turn on evaluation mode which disables dropout.
    model.eval()
    total_loss = 0.
    hidden = model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    # Turn on training mode which enables dropout.
    model.train()
    total_loss = 0.
    start_time = time.time()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        # Starting each batch, we detach the hidden state from how it was previously produced.
        # If we didn't, the model would try backpropagating all the way to start of the dataset.
        optimizer.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()

        # `clip_grad_norm` helps prevent the exploding gradient problem in RNNs / LSTMs.
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()

        total_loss += loss.item()

        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss / args.log_interval
            elapsed = time.time() - start_time
            print('| epoch {:3d} | {:5d}/{:5d} batches | lr {:02.2f} | ms/batch {:5.2f} | '
                  'loss {:5.2f} | ppl {:8.2f}'.format(
                      epoch, batch, len(train_data) // args.bptt, lr,
                      elapsed * 1000 / args.log_interval, cur_loss, math.exp(cur_loss)))
            total_loss = 0
            start_time = time.time()


# Loop over epochs.
lr = args.lr
best_val_loss = None

for epoch in range(1, args.epochs+1):
    epoch_start_time = time.time()
    train()
    val_loss = evaluate(val_data)
    print('-' * 89)
    print('| end of epoch {:3d} | time: {:5.2f}s | valid loss {:5.2f} | '
          'valid ppl {:8.2f}'.format(epoch, (time.time() - epoch_start_time),
                                     val_loss, math.exp(val_loss)))
    print('-' * 89)
    # Save the model if the validation loss is the best we've seen so far.
    if not best_val_loss or val_loss < best_val_loss:
        torch.save(model.state_dict(), args.save)
        best_val_loss = val_loss
    else:
        # Anneal the learning rate if no improvement has been seen in the validation dataset.
        lr /= 4.0
        for group in optimizer.param_groups:
            group['lr'] = lr

model.load_state_dict(torch.load(args.save))
print('| End of training | test loss {:5.2f}'.format(evaluate(val_data)))
'''
"""A hidden state that is carried over batches, a rate that is set by hand, and the best weights loaded again."""

AVERAGED = """\
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
use_amp = device == "cuda"


class Net(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.norm = nn.BatchNorm1d(n_hidden)
        self.fc2 = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.fc2(F.relu(self.norm(self.fc1(x))))


@torch.no_grad()
def update_ema(model, ema_model, decay):
    for p, ema_p in zip(model.parameters(), ema_model.parameters()):
        ema_p.mul_(decay).add_(p, alpha=1 - decay)
    for b, ema_b in zip(model.buffers(), ema_model.buffers()):
        ema_b.copy_(b)


inputs = torch.randn(90, 10)
targets = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=8, shuffle=True)

model = Net(10, 16, 3).to(device)
ema_model = copy.deepcopy(model)
for p in ema_model.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
scaler = GradScaler("cuda", enabled=use_amp)
accumulation = 3

for epoch in range(2):
    model.train()
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with autocast("cuda", enabled=use_amp):
            logits = model(x)
            loss = F.cross_entropy(logits, y) / accumulation
        scaler.scale(loss).backward()
        if (i + 1) % accumulation == 0 or i + 1 == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            update_ema(model, ema_model, 0.9)
        if i % 4 == 0:
            print(f"epoch {epoch} iteration {i} loss {loss.item() * accumulation:.4f}")
    ema_model.eval()
    with torch.no_grad():
        accuracy = (ema_model(inputs.to(device)).argmax(1) == targets.to(device)).float().mean().item()
    print(f"epoch {epoch} accuracy of the average {accuracy:.3f}")
"""
"""Accumulation over batches, autocast and loss scaling that do nothing on a CPU, and an average of the weights by hand."""

TRAINER = '''\
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.fc2 = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


class Trainer:
    """Trains a model and keeps the best weights."""

    def __init__(self, model, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=args.epochs)
        self.best = 0.0

    def train_epoch(self, loader):
        self.model.train()
        total, count = 0.0, 0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(x)
            loss = self.criterion(logits, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
            self.optimizer.step()
            total += loss.item() * x.size(0)
            count += x.size(0)
        self.scheduler.step()
        return total / count

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        correct, count = 0, 0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            logits = self.model(x)
            correct += (logits.argmax(dim=1) == y).sum().item()
            count += y.size(0)
        return correct / count

    def fit(self, train_loader, val_loader):
        for epoch in range(self.args.epochs):
            loss = self.train_epoch(train_loader)
            accuracy = self.evaluate(val_loader)
            if accuracy > self.best:
                self.best = accuracy
                torch.save(self.model.state_dict(), "best.pt")
            print(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy:.3f} best {self.best:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(2)
    inputs = torch.randn(100, 10)
    targets = (inputs @ torch.randn(10, 3)).argmax(dim=1)
    train_set = TensorDataset(inputs[:70], targets[:70])
    val_set = TensorDataset(inputs[70:], targets[70:])
    trainer = Trainer(Net(10, 16, 3), args)
    trainer.fit(DataLoader(train_set, batch_size=16, shuffle=True), DataLoader(val_set, batch_size=15))


if __name__ == "__main__":
    main()
'''
"""A class with a method for an epoch, one for the evaluation, and the best weights."""

DEEP_Q = '''\
import collections
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

# Hyperparameters
learning_rate = 0.005
gamma = 0.98
batch_size = 8


class Chain:
    """Walk along a chain; the far end pays."""

    def reset(self):
        self.position = 2
        return self.observe()

    def observe(self):
        state = np.zeros(5, dtype=np.float32)
        state[self.position] = 1.0
        return state

    def step(self, action):
        self.position += 1 if action == 1 else -1
        done = self.position in (0, 4)
        return self.observe(), float(self.position == 4), done


class ReplayBuffer():
    def __init__(self):
        self.buffer = collections.deque(maxlen=500)

    def put(self, transition):
        self.buffer.append(transition)

    def sample(self, n):
        mini_batch = random.sample(self.buffer, n)
        s_lst, a_lst, r_lst, s_prime_lst, done_mask_lst = [], [], [], [], []

        for transition in mini_batch:
            s, a, r, s_prime, done_mask = transition
            s_lst.append(s)
            a_lst.append([a])
            r_lst.append([r])
            s_prime_lst.append(s_prime)
            done_mask_lst.append([done_mask])

        return torch.tensor(np.array(s_lst), dtype=torch.float), torch.tensor(a_lst), \\
               torch.tensor(r_lst), torch.tensor(np.array(s_prime_lst), dtype=torch.float), \\
               torch.tensor(done_mask_lst)

    def size(self):
        return len(self.buffer)


class Qnet(nn.Module):
    def __init__(self):
        super(Qnet, self).__init__()
        self.fc1 = nn.Linear(5, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def sample_action(q, obs, epsilon):
    out = q(obs)
    coin = random.random()
    if coin < epsilon:
        return random.randint(0, 1)
    else:
        return out.argmax().item()


def train(q, q_target, memory, optimizer):
    for i in range(4):
        s, a, r, s_prime, done_mask = memory.sample(batch_size)

        q_out = q(s)
        q_a = q_out.gather(1, a)
        max_q_prime = q_target(s_prime).max(1)[0].unsqueeze(1)
        target = r + gamma * max_q_prime * done_mask
        loss = F.smooth_l1_loss(q_a, target)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    env = Chain()
    q = Qnet()
    q_target = Qnet()
    q_target.load_state_dict(q.state_dict())
    memory = ReplayBuffer()

    print_interval = 5
    score = 0.0
    optimizer = optim.Adam(q.parameters(), lr=learning_rate)

    for n_epi in range(20):
        epsilon = max(0.1, 0.5 - 0.02 * n_epi)
        s = env.reset()
        done = False

        while not done:
            a = sample_action(q, torch.from_numpy(s).float(), epsilon)
            s_prime, r, done = env.step(a)
            done_mask = 0.0 if done else 1.0
            memory.put((s, a, r, s_prime, done_mask))
            s = s_prime
            score += r

        if memory.size() > 16:
            train(q, q_target, memory, optimizer)

        if n_epi % print_interval == 0 and n_epi != 0:
            q_target.load_state_dict(q.state_dict())
            print("n_episode :{}, score : {:.1f}, n_buffer : {}, eps : {:.1f}%".format(
                n_epi, score / print_interval, memory.size(), epsilon * 100))
            score = 0.0


if __name__ == '__main__':
    main()
'''
"""A loop inside a function that is called now and then, a second network that is copied, and an environment in Python."""

ONE_CYCLE = '''\
import torch
import torch.nn as nn

torch.manual_seed(0)
x_all = torch.randn(96, 6)
y_all = (x_all @ torch.randn(6, 1)).tanh()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x_all[:64], y_all[:64]), batch_size=16, shuffle=True)
epochs = 3

model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * len(loader))


def train_step(x, y):
    """One step of training; gives the loss."""
    optimizer.zero_grad()
    prediction = model(x)
    loss = loss_fn(prediction, y)
    loss.backward()
    optimizer.step()
    return loss


best = float("inf")
for epoch in range(epochs):
    model.train()
    for x, y in loader:
        loss = train_step(x, y)
        scheduler.step()
    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(x_all[64:]), y_all[64:]).item()
    print(f"epoch {epoch + 1}/{epochs} loss {loss.item():.5f} val {val_loss:.5f} lr {optimizer.param_groups[0]['lr']:.6f}")
    # Stop where nothing is gained any more.
    if val_loss < best:
        best = val_loss
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "best.pt")
'''
"""A function that is one step, a schedule that cycles the momentum, and names that the rewrite would have given."""

FINE_TUNING = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16))
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.backbone(x))))


torch.manual_seed(0)
inputs = torch.randn(64, 6)
targets = (inputs @ torch.randn(6, 3)).argmax(dim=1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=16, shuffle=True)

model = Net()
# the backbone stays as it is
for p in model.backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1, momentum=0.9, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

for epoch in range(3):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"epoch {epoch} loss {total / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
"""
"""A part of the model is frozen, and the optimizer has the rest."""

RESUMED = """\
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--stop", type=int, default=10**9)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
inputs = torch.randn(64, 6)
targets = (inputs @ torch.randn(6, 3)).argmax(dim=1)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

start = 0
if args.resume and os.path.exists("last.pt"):
    state = torch.load("last.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    start = state["step"]

for step in range(start, min(args.steps, args.stop)):
    index = torch.randint(0, len(inputs), (8,))
    loss = F.cross_entropy(model(inputs[index]), targets[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")

state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
torch.save({**state, "step": min(args.steps, args.stop)}, "last.pt")
"""
"""It goes on from a checkpoint that is written at the end alone."""

CLOSURE = """\
import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 24).view(-1, 1)
    model = Field()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    for epoch in range(2):
        for points in x.split(12):

            def closure():
                optimizer.zero_grad()
                loss = ((model(points) - torch.sin(3 * points)) ** 2).mean()
                loss.backward()
                print(f"  loss {loss.item():.5f}")
                return loss

            loss = optimizer.step(closure)
            print(f"epoch {epoch} loss {loss.item():.5f}")


main()
"""
"""An optimizer that asks for the loss as often as it needs, of the batch of a loop around its closure."""

ACTOR_CRITIC = """\
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    def reset(self):
        self.position, self.time = 2, 0
        return self.seen()

    def seen(self):
        seen = np.zeros(6, dtype=np.float32)
        seen[self.position] = 1.0
        return seen

    def step(self, action):
        self.time += 1
        self.position = max(0, self.position + (1 if action == 1 else -1))
        done = self.position == 5 or self.time == 12
        return self.seen(), (1.0 if self.position == 5 else -0.1), done


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 16)
        self.actor = nn.Linear(16, 2)
        self.critic = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return self.actor(x), self.critic(x)


def main():
    torch.manual_seed(0)
    env, gamma = Corridor(), 0.9
    net = Net()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    for episode in range(6):
        state, done = env.reset(), False
        log_probs, values, entropies, rewards = [], [], [], []
        while not done:
            logits, value = net(torch.from_numpy(state))
            dist = Categorical(logits=logits)
            action = dist.sample()
            log_probs.append(dist.log_prob(action))
            values.append(value)
            entropies.append(dist.entropy())
            state, reward, done = env.step(action.item())
            rewards.append(reward)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + gamma * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        values = torch.stack(values).squeeze(-1)
        advantage = returns - values
        policy_loss = -(torch.stack(log_probs) * advantage.detach()).mean()
        value_loss = advantage.pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"episode {episode} length {len(rewards)} loss {loss.item():.4f} value {value_loss.item():.4f}")


main()
"""
"""Episodes in the function that trains, whose lists hold values of three kinds."""

LOADED_ARRAYS = """\
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, n):
        self.x = np.random.RandomState(0).randn(n, 6).astype(np.float32)
        self.x /= np.abs(self.x).max(axis=1, keepdims=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i].sum(keepdims=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


torch.manual_seed(0)
loader = DataLoader(Waves(24), batch_size=8, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x = x / x.norm(dim=1, keepdim=True)
        loss = ((model(x) - y.exp()) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{epoch} {loss.item():.4f} {x.mean().item():.6f}")
"""
"""A data set over arrays of NumPy in float32, of which tensors are made by its loader alone."""

MEMORY = """\
import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(1)


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(3, 2)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return Normal(self.mu(x), self.log_std.exp())


class Memory:
    def __init__(self):
        self.log_probs = []


policy = Gaussian()
memory = Memory()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
target = torch.tensor([0.5, -0.5])


def play(x):
    dist = policy(x)
    action = dist.sample()
    memory.log_probs.append(dist.log_prob(action).sum(-1))
    return -((action - target) ** 2).sum().item()


baseline = 0.0
for update in range(5):
    memory.log_probs.clear()
    rewards = []
    for step in range(7):
        rewards.append(play(torch.randn(3)))
    returns = torch.tensor(rewards) - baseline
    baseline = 0.9 * baseline + 0.1 * sum(rewards) / len(rewards)
    loss = -(torch.stack(memory.log_probs) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"update {update} loss {loss.item():.4f} reward {sum(rewards):.3f}")
"""
"""A policy of normal numbers, and values that an object of the script's own collects."""

AGENT = """\
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    def reset(self):
        self.position, self.time = 2, 0
        return self.seen()

    def seen(self):
        seen = np.zeros(6, dtype=np.float32)
        seen[self.position] = 1.0
        return seen

    def step(self, action):
        self.time += 1
        self.position = max(0, self.position + (1 if action == 1 else -1))
        done = self.position == 5 or self.time == 12
        return self.seen(), (1.0 if self.position == 5 else -0.1), done


class PolicyNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(6, hidden)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        return F.softmax(self.fc2(F.relu(self.fc1(x))), dim=-1)


class Agent:
    def __init__(self, gamma=0.95):
        self.gamma = gamma
        self.policy = PolicyNet(16)
        self.optimizer = optim.Adam(self.policy.parameters(), lr=1e-2)
        self.log_probs, self.rewards = [], []

    def act(self, state):
        state = torch.from_numpy(state).float().unsqueeze(0)
        probs = self.policy(state)
        dist = Categorical(probs)
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action.item()

    def learn(self):
        R, returns = 0, []
        for r in self.rewards[::-1]:
            R = r + self.gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        loss = []
        for log_prob, R in zip(self.log_probs, returns):
            loss.append(-log_prob * R)
        self.optimizer.zero_grad()
        loss = torch.cat(loss).sum()
        loss.backward()
        self.optimizer.step()
        self.log_probs, self.rewards = [], []
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    env, agent = Corridor(), Agent()
    for episode in range(5):
        state, done, total = env.reset(), False, 0.0
        while not done:
            state, reward, done = env.step(agent.act(state))
            agent.rewards.append(reward)
            total += reward
        print(f"episode {episode} reward {total:.2f} loss {agent.learn():.4f}")
"""
"""A policy, its optimizer and an episode as attributes of an agent."""

RETURNED = """\
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    def reset(self):
        self.position, self.time = 2, 0
        return self.seen()

    def seen(self):
        seen = np.zeros(6, dtype=np.float32)
        seen[self.position] = 1.0
        return seen

    def step(self, action):
        self.time += 1
        self.position = max(0, self.position + (1 if action == 1 else -1))
        done = self.position == 5 or self.time == 12
        return self.seen(), (1.0 if self.position == 5 else -0.1), done


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    logits = policy(torch.from_numpy(state))
    dist = Categorical(logits=logits)
    action = dist.sample()
    return action.item(), dist.log_prob(action), dist.entropy()


env = Corridor()
for episode in range(5):
    state, done = env.reset(), False
    log_probs, entropies, rewards = [], [], []
    while not done:
        action, log_prob, entropy = select_action(state)
        state, reward, done = env.step(action)
        log_probs.append(log_prob)
        entropies.append(entropy)
        rewards.append(reward)
    returns = torch.tensor([sum(rewards[t:]) for t in range(len(rewards))])
    loss = -(torch.stack(log_probs) * returns).sum() - 0.01 * torch.stack(entropies).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"episode {episode} loss {loss.item():.4f} return {sum(rewards):.2f}")
"""
"""Values that a function gives back beside the action, and its caller collects."""

PARTED = '''\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, 16)
        self.fc2 = nn.Linear(16, n_out)

    def forward(self, x):
        return self.fc2(F.leaky_relu(self.fc1(x), 0.2))


class Adversaries:
    """A generator and a discriminator, and one step of both."""

    def __init__(self, netG, netD, lr):
        self.netG, self.netD = netG, netD
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=lr, betas=(0.5, 0.999))
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=lr, betas=(0.5, 0.999))

    def set_input(self, real, noise):
        self.real, self.noise = real, noise

    def forward(self):
        self.fake = self.netG(self.noise)

    def backward_D(self):
        """The loss of the discriminator."""
        # fake; stop backprop to the generator by detaching
        score = self.netD(self.fake.detach())
        loss_fake = F.binary_cross_entropy_with_logits(score, torch.zeros_like(score))
        score = self.netD(self.real)
        loss_real = F.binary_cross_entropy_with_logits(score, torch.ones_like(score))
        self.loss_D = (loss_fake + loss_real) * 0.5
        self.loss_D.backward()

    def backward_G(self):
        score = self.netD(self.fake)
        self.loss_G = F.binary_cross_entropy_with_logits(score, torch.ones_like(score))
        self.loss_G.backward()

    def optimize_parameters(self):
        self.forward()
        # the discriminator
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        # the generator
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()

    def losses(self):
        return {"D": self.loss_D.item(), "G": self.loss_G.item()}


torch.manual_seed(4)
points = torch.randn(64, 2) * 0.3 + 1.0
model = Adversaries(Net(4, 2), Net(2, 1), 1e-2)
for step in range(8):
    index = torch.randint(0, len(points), (16,))
    model.set_input(points[index], torch.randn(16, 4))
    model.optimize_parameters()
    losses = model.losses()
    print("step %d D %.4f G %.4f" % (step, losses["D"], losses["G"]))
'''
"""A step whose losses are computed, and whose gradients are taken, in methods of their own."""

JOINT = """\
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 16)
        self.code = nn.Linear(16, 3)

    def forward(self, x):
        return self.code(torch.tanh(self.hidden(x)))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 6)

    def forward(self, code):
        return self.out(code)


torch.manual_seed(0)
points = torch.randn(40, 6)
encoder, decoder = Encoder(), Decoder()
critic = nn.Linear(6, 1)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.AdamW(params, lr=2e-2, weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
others = torch.optim.SGD(
    [{"params": itertools.chain(critic.parameters())}, {"params": decoder.parameters(), "lr": 1e-3}], lr=5e-2, momentum=0.9
)

for step in range(8):
    x = points[torch.randint(0, len(points), (16,))]
    optimizer.zero_grad()
    reconstruction = decoder(encoder(x))
    loss = F.mse_loss(reconstruction, x)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 0.5)
    optimizer.step()
    scheduler.step()
    code = torch.randn(16, 3)
    others.zero_grad()
    score = critic(decoder(code)).mean() ** 2
    score.backward()
    others.step()
    if step % 2 == 0:
        print("step %d loss %.4f score %.4f rate %.5f" % (step, loss.item(), score.item(), optimizer.param_groups[0]["lr"]))
"""
"""Optimizers over several modules."""

OWN_OPTIMIZER = """\
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Agent(nn.Module):
    def __init__(self, lr):
        super().__init__()
        self.data = []
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 3)
        self.optimizer = optim.Adam(self.parameters(), lr=lr)

    def scores(self, x):
        return self.fc2(F.relu(self.fc1(x)))

    def act(self, state, epsilon=0.1):
        if random.random() < epsilon:
            return random.randint(0, 2)
        return self.scores(state).argmax().item()

    def put(self, transition):
        self.data.append(transition)

    def batch(self):
        states, actions, rewards = [], [], []
        for state, action, reward in self.data:
            states.append(state)
            actions.append([action])
            rewards.append([reward])
        self.data = []
        return torch.stack(states), torch.tensor(actions), torch.tensor(rewards)

    def fit(self):
        s, a, r = self.batch()
        for _ in range(2):
            loss = F.mse_loss(self.scores(s).gather(1, a), r)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


class World:
    def __init__(self):
        self.center = [0.5, -0.5, 0.1]

    def reward(self, s, a):
        return self.center[a] * s


def reset_all(world):
    world.center = world.center[1:] + world.center[:1]


def main():
    torch.manual_seed(0)
    random.seed(0)
    world, total = World(), 0.0
    agent = Agent(lr=1e-2)
    for episode in range(6):
        for step in range(8):
            s = torch.randn(4)
            a = agent.act(s)
            r = world.reward(s[0].item(), a)
            agent.put((s, a, r))
            total += r
        loss = agent.fit()
        if episode % 2 == 0:
            reset_all(world)
            print("episode %d total %.3f loss %.4f" % (episode, total, loss))


if __name__ == "__main__":
    main()
"""
"""A module that chooses, keeps what it saw, and trains itself with an optimizer of its own."""

COMPARED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as Data

torch.manual_seed(1)

LR = 0.01
BATCH_SIZE = 32
EPOCH = 2

x = torch.unsqueeze(torch.linspace(-1, 1, 80), dim=1)
y = x.pow(2) + 0.1 * torch.normal(torch.zeros(*x.size()))

loader = Data.DataLoader(dataset=Data.TensorDataset(x, y), batch_size=BATCH_SIZE, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(1, 20)
        self.predict = nn.Linear(20, 1)

    def forward(self, x):
        x = F.relu(self.hidden(x))
        return self.predict(x)


if __name__ == "__main__":
    net_SGD = Net()
    net_Momentum = Net()
    net_RMSprop = Net()
    net_Adam = Net()
    nets = [net_SGD, net_Momentum, net_RMSprop, net_Adam]

    opt_SGD = torch.optim.SGD(net_SGD.parameters(), lr=LR)
    opt_Momentum = torch.optim.SGD(net_Momentum.parameters(), lr=LR, momentum=0.8)
    opt_RMSprop = torch.optim.RMSprop(net_RMSprop.parameters(), lr=LR, alpha=0.9)
    opt_Adam = torch.optim.Adam(net_Adam.parameters(), lr=LR, betas=(0.9, 0.99))
    optimizers = [opt_SGD, opt_Momentum, opt_RMSprop, opt_Adam]

    loss_func = torch.nn.MSELoss()
    losses_his = [[], [], [], []]

    for epoch in range(EPOCH):
        print("epoch", epoch)
        for step, (b_x, b_y) in enumerate(loader):
            for net, opt, l_his in zip(nets, optimizers, losses_his):
                output = net(b_x)
                loss = loss_func(output, b_y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                l_his.append(loss.item())

    for name, l_his in zip(["SGD", "Momentum", "RMSprop", "Adam"], losses_his):
        print(name, "%.4f" % l_his[-1])
"""
"""Four modules of one class, each with an optimizer of another kind, in one loop."""

FORMS = {
    "compared": COMPARED,
    "own_optimizer": OWN_OPTIMIZER,
    "joint": JOINT,
    "parted": PARTED,
    "closure": CLOSURE,
    "resumed": RESUMED,
    "classification": example("digits"),
    "autoencoder": example("vae"),
    "adversarial": example("dcgan"),
    "adversarial_generator_first": ADVERSARIAL_GENERATOR_FIRST,
    "language_model": LANGUAGE_MODEL,
    "averaged": AVERAGED,
    "trainer": TRAINER,
    "deep_q": DEEP_Q,
    "one_cycle": ONE_CYCLE,
    "fine_tuning": FINE_TUNING,
    "phases": example("finetune"),
    # A class of a script that a test runs cannot be pickled.
    # A bound that the second epoch does not pass, so that the rate falls.
    "by_hand": example("char_rnn")
    .replace("torch.save(model, f)", "torch.save(model.state_dict(), f)")
    .replace("val_loss < best_val_loss:", "val_loss < best_val_loss - 0.05:"),
    "gradient_penalty": example("wgan_gp"),
    "two_optimizers_on_one_loss": example("seq2seq"),
    "two_views": example("simclr"),
    "two_training_functions": example("distill"),
    "episodes": example("reinforce"),
    "actor_critic": ACTOR_CRITIC,
    "loaded_arrays": LOADED_ARRAYS,
    "memory": MEMORY,
    "agent": AGENT,
    "returned": RETURNED,
}
