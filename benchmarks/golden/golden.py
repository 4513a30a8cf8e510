"""Writes the golden references: python3 golden.py FOLDER [MODEL...].

For each model one step in float64 on weights and a batch that formula.py gives: the
loss and of each block's gradient, both summed over the batch, the size, the sum, the
Euclidean norm and eight elements.
"""

import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True  # leave no __pycache__ in the tree

import formula
import nets

KEPT = 8
VOCABULARY = 500

# name: model, shape of an example, classes, examples
CASES = {
    "resnext-110": (nets.resnext_110, (3, 28, 28), 10, 2),
    "resnet-50": (nets.resnet_50, (3, 56, 56), 1000, 4),
    "inception-bn": (nets.inception_bn, (3, 56, 56), 1000, 4),
    "kaggle": (nets.kaggle, (3, 48, 48), 121, 4),
    "cnn-rand": (nets.cnn_rand, (20,), 2, 4),
    "cifar-small": (nets.cifar_small, (3, 32, 32), 10, 4),
}


def rnn_lstm(p, n, steps, words):
    tokens, following = (torch.from_numpy(formula.ids(i, (n, steps), 0, words)) for i in (0, 1))
    return F.cross_entropy(nets.rnn_lstm(p, tokens, words), following.flatten(), reduction="sum")


def dssm(p, n, words, trigrams):
    around = torch.from_numpy(formula.bags(0, n * 4, trigrams, words)).view(n, -1)
    candidates = torch.from_numpy(formula.bags(1, n * 5, trigrams, words)).view(n, -1)
    return nets.sampled_logistic(nets.dssm(p, around, candidates, words, nets.padded_bags))


def seq2seq(p, n, steps, words, targets):
    source = torch.from_numpy(formula.ids(0, (n, steps), formula.WORDS, words))
    lengths = torch.from_numpy(formula.lengths(formula.key(formula.SEED, 6, 1), n, steps))
    before, after = (torch.from_numpy(x) for x in formula.translation(3, n, steps + 1, targets))
    scores = nets.seq2seq(p, source, before, words, targets, lengths)
    return F.cross_entropy(scores, after.flatten(), reduction="sum", ignore_index=formula.PADDING)


def deepspeech2(p, n, steps, pitches, letters, words):
    lengths = torch.from_numpy(formula.lengths(formula.key(formula.SEED, 6, 0), n, steps))
    sounds = formula.float32(formula.signed(formula.key(formula.SEED, 6, 1), n * steps * pitches))
    text = torch.from_numpy(formula.ids(2, (n, letters), 1, words))
    text_lengths = torch.from_numpy(formula.lengths(formula.key(formula.SEED, 6, 3), n, letters))
    scores, left = nets.deepspeech2(p, torch.from_numpy(sounds).view(n, steps, -1), words, lengths)
    return nets.ctc(scores, left, text, text_lengths)


# name: loss of n examples, n, and the sizes of the data set, which are those of Set of package data
SEQUENCES = {
    "rnn-lstm": (rnn_lstm, 3, {"steps": 35, "words": 10000}),
    "dssm": (dssm, 16, {"trigrams": 10, "words": 15000}),
    "seq2seq": (seq2seq, 4, {"steps": 20, "words": 4000, "targets": 4000}),
    "deepspeech2": (deepspeech2, 3, {"steps": 121, "pitches": 161, "letters": 12, "words": 29}),
}


class Blocks:
    """Blocks gives a model its parameters, one after the other."""

    sparse, split = False, True

    def __init__(self):
        self.list, self.tables = [], set()

    def take(self, shape, value):
        r = formula.signed(formula.key(formula.SEED, 1, len(self.list)), math.prod(shape))
        t = torch.from_numpy(formula.float32(value(r))).reshape(shape)
        self.list.append(t.requires_grad_())
        return t

    def dropout(self, x, rate):
        return x  # it is random

    def weights(self, *shape):
        bound = math.sqrt(6 / math.prod(shape[1:]))
        return self.take(shape, lambda r: bound * r)

    def table(self, *shape):
        self.tables.add(len(self.list))
        return self.weights(*shape)

    def bias(self, n):
        return self.take((n,), lambda r: r / 10)

    def gamma(self, n):
        return self.take((n,), lambda r: 0.5 + r / 10)

    def beta(self, n):
        return self.take((n,), lambda r: r + np.where(r < -0.4, -2.0, 2.0))


def batch(shape, classes, n):
    size = n * math.prod(shape)
    labels = [formula.below(formula.key(formula.SEED, 3), i, classes) for i in range(n)]
    if len(shape) == 1:
        k = formula.key(formula.SEED, 4)
        x = torch.tensor([formula.below(k, i, VOCABULARY) for i in range(size)])
    else:
        r = formula.signed(formula.key(formula.SEED, 2), size)
        x = torch.from_numpy(formula.float32(r))
    return x.reshape(n, *shape), torch.tensor(labels)


def pictures(name):
    """The loss of a model that tells classes apart, and what its golden file says of the batch."""
    model, shape, classes, n = CASES[name]
    x, labels = batch(shape, classes, n)
    head = {"shape": shape, "classes": classes, "examples": n}
    return lambda p: F.cross_entropy(model(p, x, classes), labels, reduction="sum"), head


def sequences(name):
    """The same of a model of sequences."""
    loss, n, sizes = SEQUENCES[name]
    return lambda p: loss(p, n, **sizes), {"sizes": sizes, "examples": n}


def reference(loss):
    """One step: the loss, and a row for each block."""
    p = Blocks()
    total = loss(p)
    total.backward()
    rows = []
    for i, t in enumerate(p.list):
        g = torch.zeros_like(t) if t.grad is None else t.grad
        own = g[g.ne(0).any(dim=1)].flatten() if i in p.tables else g.flatten()
        k = formula.key(formula.SEED, 5, i)
        kept = [own[formula.below(k, j, len(own))].item() for j in range(KEPT)]
        rows.append([g.numel(), *(float(f"{v:.8g}") for v in [g.sum().item(), g.norm().item(), *kept])])
    return total.item(), rows


def main():
    for name in sys.argv[2:] or [*CASES, *SEQUENCES]:
        loss, head = (pictures if name in CASES else sequences)(name)
        head["loss"], rows = reference(loss)
        rows = ",\n".join(json.dumps(b, separators=(",", ":")) for b in rows)
        with open(os.path.join(sys.argv[1], name + ".json"), "w") as f:
            f.write(json.dumps(head)[:-1] + ', "blocks": [\n' + rows + "\n]}\n")
        print(f"{name}: loss {head['loss']:.6f}")


if __name__ == "__main__":
    main()
