"""Matrix factorisation of ratings, with biases; Adagrad and L2 by hand."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

n_users, n_items, n_factors = 30, 20, 5


class Ratings(Dataset):
    def __init__(self, users, items, ratings):
        self.users, self.items, self.ratings = users, items, ratings

    def __len__(self):
        return len(self.ratings)

    def __getitem__(self, i):
        return self.users[i], self.items[i], self.ratings[i]


class MF(nn.Module):
    def __init__(self, n_users, n_items, n_factors):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors)
        self.item_factors = nn.Embedding(n_items, n_factors)
        self.user_biases = nn.Embedding(n_users, 1)
        self.item_biases = nn.Embedding(n_items, 1)
        self.mean = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.user_biases.weight)
        nn.init.zeros_(self.item_biases.weight)

    def forward(self, user, item):
        pred = self.mean + self.user_biases(user) + self.item_biases(item)
        pred = pred + (self.user_factors(user) * self.item_factors(item)).sum(dim=1, keepdim=True)
        return pred.squeeze(1)


def rmse(model, loader):
    model.eval()
    se, n = 0.0, 0
    with torch.no_grad():
        for user, item, rating in loader:
            se += ((model(user, item) - rating) ** 2).sum().item()
            n += len(rating)
    model.train()
    return (se / n) ** 0.5


def main():
    torch.manual_seed(0)
    true = torch.randn(n_users, 3) @ torch.randn(3, n_items) + 3
    pairs = torch.randperm(n_users * n_items)[:240]
    users, items = pairs // n_items, pairs % n_items
    ratings = true[users, items].clamp(1, 5)
    train_loader = DataLoader(Ratings(users[:200], items[:200], ratings[:200]), batch_size=64, shuffle=True)
    test_loader = DataLoader(Ratings(users[200:], items[200:], ratings[200:]), batch_size=64)

    model = MF(n_users, n_items, n_factors)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    loss_func = nn.MSELoss()
    for epoch in range(3):
        for user, item, rating in train_loader:
            prediction = model(user, item)
            penalty = sum(p.pow(2).sum() for p in model.parameters())
            loss = loss_func(prediction, rating) + 1e-4 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} train rmse {rmse(model, train_loader):.4f} test rmse {rmse(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
