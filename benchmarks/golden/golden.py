"""Writes the golden references: python3 golden.py FOLDER.

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

sys.dont_write_bytecode = True  # leave no __pycache__ in the tree

import formula
import nets

KEPT = 8

# name: model, shape of an example, classes, examples
CASES = {
    "resnext-110": (nets.resnext_110, (3, 28, 28), 10, 2),
    "resnet-50": (nets.resnet_50, (3, 56, 56), 1000, 4),
    "inception-bn": (nets.inception_bn, (3, 56, 56), 1000, 4),
    "kaggle": (nets.kaggle, (3, 48, 48), 121, 4),
    "cnn-rand": (nets.cnn_rand, (20,), 2, 4),
    "cifar-small": (nets.cifar_small, (3, 32, 32), 10, 4),
}
VOCABULARY = 500


class Blocks:
    """Blocks gives a model its parameters, one after the other."""

    def __init__(self):
        self.list = []

    def take(self, shape, value):
        r = formula.signed(formula.key(formula.SEED, 1, len(self.list)), math.prod(shape))
        t = torch.from_numpy(value(r).astype("float32").astype("float64")).reshape(shape)
        self.list.append(t.requires_grad_())
        return t

    def dropout(self, x, rate):
        return x  # it is random

    def weights(self, *shape):
        bound = math.sqrt(6 / math.prod(shape[1:]))
        return self.take(shape, lambda r: bound * r)

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
        x = torch.from_numpy(r.astype("float32").astype("float64"))
    return x.reshape(n, *shape), torch.tensor(labels)


def reference(name):
    model, shape, classes, n = CASES[name]
    x, labels = batch(shape, classes, n)
    p = Blocks()
    loss = torch.nn.functional.cross_entropy(model(p, x, classes), labels, reduction="sum")
    loss.backward()
    blocks = []
    for i, t in enumerate(p.list):
        g = (torch.zeros_like(t) if t.grad is None else t.grad).flatten()
        k = formula.key(formula.SEED, 5, i)
        kept = [g[formula.below(k, j, g.numel())].item() for j in range(KEPT)]
        blocks.append([g.numel(), *(float(f"{v:.8g}") for v in [g.sum().item(), g.norm().item(), *kept])])
    return {"shape": shape, "classes": classes, "examples": n, "loss": loss.item(), "blocks": blocks}


def main():
    for name in CASES:
        r = reference(name)
        rows = ",\n".join(json.dumps(b, separators=(",", ":")) for b in r.pop("blocks"))
        head = json.dumps(r)[:-1]
        with open(os.path.join(sys.argv[1], name + ".json"), "w") as f:
            f.write(head + ', "blocks": [\n' + rows + "\n]}\n")
        print(f"{name}: loss {r['loss']:.6f}")


if __name__ == "__main__":
    main()
