"""Split residual vector quantiser: one table for code 0, a residual chain for the rest.

Tables are kept as running sums and counts (fp32, exponential averages); entries that nobody uses are moved onto
vectors of the batch. No operation waits for the GPU, so that a training step can be captured as a CUDA graph.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

DECAY = .99
DEAD = .03                            # an entry used less than this share of the mean is moved
COMMIT_FLOOR = 1e-5


def nearest(x, table):
    return (table.square().sum(1) - 2 * x @ table.T).argmin(1)


def k_means(x, entries, rounds=10):
    table = x[torch.randperm(len(x), device=x.device)[:entries]]
    if len(table) < entries:
        table = table.repeat(entries // len(table) + 1, 1)[:entries]
    for _ in range(rounds):
        hit = F.one_hot(nearest(x, table), entries).float()
        count = hit.sum(0)
        spare = x[torch.randint(0, len(x), (entries,), device=x.device)]
        table = torch.where(count[:, None] > 0, hit.T @ x / count.clamp(min=1)[:, None], spare)
    return table


class Quantizer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.books, self.entries, self.width = c["codebooks"], c["entries"], c["width"]
        width, hidden = self.width, c["encoder_hidden"]
        self.in_first, self.in_rest = (nn.Linear(hidden, width, bias=False) for _ in range(2))
        self.out_first, self.out_rest = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.register_buffer("usage", torch.ones(self.books, self.entries))
        self.register_buffer("sums", torch.randn(self.books, self.entries, width) * .1)

    def table(self, book):
        return self.sums[book] / self.usage[book].clamp(min=COMMIT_FLOOR)[:, None]

    @torch.no_grad()
    def learn(self, x, book, index):
        """Moves table `book` towards the vectors x that chose `index`; revives dead entries."""
        hit = F.one_hot(index, self.entries).to(x.dtype)
        usage = self.usage[book].mul(DECAY).add(hit.sum(0), alpha=1 - DECAY)
        sums = self.sums[book].mul(DECAY).add(hit.T @ x, alpha=1 - DECAY)
        mean = x.shape[0] / self.entries
        dead = usage < DEAD * mean
        fresh = x[torch.randint(0, x.shape[0], (self.entries,), device=x.device)] * (.3 * mean)
        self.sums[book].copy_(torch.where(dead[:, None], fresh, sums))
        self.usage[book].copy_(torch.where(dead, torch.full_like(usage, .3 * mean), usage))

    @torch.no_grad()
    def scale_inputs(self, latents):
        """Input projections with unit deviation on these latents."""
        centred = latents - latents.mean((0, 1), keepdim=True)
        for projection in (self.in_first, self.in_rest):
            projection.weight.mul_(1 / projection(centred).std())
        for projection in (self.out_first, self.out_rest):
            projection.weight.mul_(.7)

    @torch.no_grad()
    def place_tables(self, latents):
        for book in range(self.books):
            if book < 2:
                x = (self.in_rest if book else self.in_first)(latents).flatten(0, 1)
            table = k_means(x, self.entries)
            self.usage[book].fill_(len(x) / self.entries)
            self.sums[book].copy_(table * (len(x) / self.entries))
            if book:
                x = x - table[nearest(x, table)]

    def kept_books(self, batch, device, drop):
        """How many codebooks each item is decoded from: all, or for a share `drop` of the items fewer."""
        everything = torch.full((batch,), self.books, device=device)
        fewer = torch.randint(1, self.books, (batch,), device=device)
        return torch.where(torch.rand(batch, device=device) < drop, fewer, everything)

    def forward(self, latents, learn=False, drop=0.):
        """Latents [batch, frames, hidden] -> (vectors [.., 2 * width], codes [.., codebooks], commitment loss)."""
        batch, time, _ = latents.shape
        latents = latents.float()
        first, rest = self.in_first(latents).flatten(0, 1), self.in_rest(latents).flatten(0, 1)
        index = nearest(first.detach(), self.table(0))
        chosen = F.embedding(index, self.table(0))
        if learn:
            self.learn(first.detach(), 0, index)
        codes, commit = [index], (first - chosen).square().mean()
        residual, sum_all, sum_kept = rest.detach(), torch.zeros_like(rest), torch.zeros_like(rest)
        kept = self.kept_books(batch, latents.device, drop).repeat_interleave(time, output_size=batch * time)[:, None]
        for book in range(1, self.books):
            index = nearest(residual, self.table(book))
            vector = F.embedding(index, self.table(book))
            if learn:
                self.learn(residual, book, index)
            codes.append(index)
            sum_all, residual = sum_all + vector, residual - vector
            sum_kept = sum_kept + vector * (kept > book)
            commit = commit + ((rest - sum_all).square() * (kept > book)).mean() / (self.books - 1) * 2
        first = first + (chosen - first).detach()
        rest = (rest + (sum_kept - rest).detach()) * (kept > 1)
        out = self.out_first(first.view(batch, time, -1)) + self.out_rest(rest.view(batch, time, -1))
        return out, torch.stack(codes, 1).view(batch, time, self.books), commit

    def dequantise(self, codes):
        first = F.embedding(codes[..., 0], self.table(0))
        rest = sum(F.embedding(codes[..., book], self.table(book)) for book in range(1, self.books))
        return self.out_first(first) + self.out_rest(rest)
