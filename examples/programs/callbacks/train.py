"""Learn to sort three digits with a GRU, by a Trainer with callbacks."""
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from trainer import Trainer


class SortDataset(Dataset):
    def __init__(self, n, length=3, num_digits=5):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randint(num_digits, (n, length), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], torch.sort(self.x[i])[0]


class SortNet(nn.Module):
    def __init__(self, num_digits=5, width=16):
        super().__init__()
        self.embed = nn.Embedding(num_digits, width)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, num_digits)

    def forward(self, x, targets=None):
        out, _ = self.gru(self.embed(x))
        logits = self.head(out)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


if __name__ == '__main__':
    torch.manual_seed(3407)
    train_dataset, test_dataset = SortDataset(200), SortDataset(40)
    model = SortNet()
    trainer = Trainer(Trainer.get_default_config(), model, train_dataset)

    def batch_end_callback(trainer):
        if trainer.iter_num % 2 == 0:
            print(f"iter {trainer.iter_num}: train loss {trainer.loss.item():.5f}")

    trainer.add_callback('on_batch_end', batch_end_callback)
    trainer.run()

    model.eval()
    with torch.no_grad():
        logits, _ = model(test_dataset.x)
    correct = (logits.argmax(-1) == torch.sort(test_dataset.x, dim=1)[0]).all(dim=1)
    print("test: %d/%d correct" % (correct.sum().item(), len(correct)))
