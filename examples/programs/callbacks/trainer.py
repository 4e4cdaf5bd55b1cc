"""A trainer with callbacks, as a small library."""
from collections import defaultdict

import torch
from torch.utils.data.dataloader import DataLoader


class Trainer:
    @staticmethod
    def get_default_config():
        return {'device': 'auto', 'num_workers': 0, 'max_iters': 8, 'batch_size': 16, 'learning_rate': 3e-3,
                'betas': (0.9, 0.95), 'weight_decay': 0.1, 'grad_norm_clip': 1.0}

    def __init__(self, config, model, train_dataset):
        self.config = config
        self.model = model
        self.optimizer = None
        self.train_dataset = train_dataset
        self.callbacks = defaultdict(list)
        if config['device'] == 'auto':
            self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        else:
            self.device = config['device']
        self.model = self.model.to(self.device)
        self.iter_num = 0

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks.get(onevent, []):
            callback(self)

    def run(self):
        model, config = self.model, self.config
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config['learning_rate'], betas=config['betas'], weight_decay=config['weight_decay'])
        train_loader = DataLoader(
            self.train_dataset,
            sampler=torch.utils.data.RandomSampler(self.train_dataset, replacement=True, num_samples=1000),
            shuffle=False,
            batch_size=config['batch_size'],
            num_workers=config['num_workers'],
        )
        model.train()
        self.iter_num = 0
        data_iter = iter(train_loader)
        while True:
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(train_loader)
                batch = next(data_iter)
            batch = [t.to(self.device) for t in batch]
            x, y = batch

            logits, self.loss = model(x, y)
            model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config['grad_norm_clip'])
            self.optimizer.step()

            self.trigger_callbacks('on_batch_end')
            self.iter_num += 1
            if config['max_iters'] is not None and self.iter_num >= config['max_iters']:
                break
