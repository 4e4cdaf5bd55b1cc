"""Skip-gram word vectors with sparse gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F

text = "a man a plan a canal and a cat and a dog and a man in a boat on a canal with a plan".split() * 4
vocab = sorted(set(text))
ids = torch.tensor([vocab.index(w) for w in text])


class SkipGram(nn.Module):
    def __init__(self, n_vocab, n_embed):
        super().__init__()
        self.in_embed = nn.Embedding(n_vocab, n_embed, sparse=True)
        self.out_embed = nn.Embedding(n_vocab, n_embed, sparse=True)

    def forward(self, centre, context, noise):
        v = self.in_embed(centre)
        positive = F.logsigmoid((v * self.out_embed(context)).sum(1))
        negative = F.logsigmoid(-(self.out_embed(noise) * v.unsqueeze(1)).sum(2)).sum(1)
        return -(positive + negative).mean()


torch.manual_seed(0)
model = SkipGram(len(vocab), 8)
optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.01)
for step in range(6):
    i = torch.randint(1, len(ids) - 1, (32,))
    loss = model(ids[i], ids[i + 1], torch.randint(len(vocab), (32, 3)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
