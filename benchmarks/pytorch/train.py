"""Trains one model step by step, as it is told to on standard input.

The first line in is the configuration (see Config in pytorch.go), the first line
out what will run (see Setup). Then each line in is a number of steps, and each
line out the processor and wall seconds that they took together. The end of the
input ends the program.

A step is what PyTorch's users write: gradients to none, forward, backward, step of
torch.optim. Pictures come as a plain and as a channels_last variant, embeddings with
dense and, where the optimizer can, sparse gradients; the fastest in a short trial runs.
"""

import ctypes
import itertools
import json
import math
import os
import re
import sys
import time

OLD = ("Prescott", "Core2", "Katmai", "Generic")  # what OpenBLAS takes for a processor that it does not know


def openblas():
    """The version and the kernels of OpenBLAS, if it is installed as a library."""
    try:
        lib = ctypes.CDLL("libopenblas.so.0")
    except OSError:
        return None
    for f in (lib.openblas_get_config, lib.openblas_get_corename):
        f.restype = ctypes.c_char_p
    version = re.search(r"OpenBLAS (\S+)", lib.openblas_get_config().decode())
    return version.group(1) if version else "", lib.openblas_get_corename().decode()


def blas(built):
    """Which library PyTorch's matrix products come from."""
    info = re.search(r"BLAS_INFO=(\w+)", built)
    kind = info.group(1) if info else ""
    if kind == "generic":  # the system's libblas, whatever that is
        kind = "the system's BLAS"
        if os.path.exists("/proc/self/maps"):
            with open("/proc/self/maps") as f:
                if any("openblas" in line and "libblas" in line for line in f):
                    kind = "open"
    found = openblas() if kind == "open" else None
    return "OpenBLAS %s with %s kernels" % found if found else kind


def choose_kernels():
    """Starts the program anew where OpenBLAS would run with kernels of 2004."""
    blas = openblas()
    if blas is None or blas[1] not in OLD or "OPENBLAS_CORETYPE" in os.environ:
        return
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line.split() for line in f if line.startswith("flags")), [])
    except OSError:
        return
    core = "SkylakeX" if "avx512vl" in flags else "Haswell" if "avx2" in flags else None
    if core:
        os.environ["OPENBLAS_CORETYPE"] = core
        os.execv(sys.executable, [sys.executable, *sys.argv])


class Parameters:
    """Gives a model its parameters, in every step the same."""

    split = False  # GRUs have their blocks in one piece, which spares copies

    def __init__(self, channels_last, sparse):
        self.list, self.at = [], 0
        self.channels_last, self.sparse = channels_last, sparse

    def take(self, shape, make):
        if self.at == len(self.list):
            t = make(torch.empty(shape))
            if self.channels_last and len(shape) == 4:
                t = t.to(memory_format=torch.channels_last)
            self.list.append(t.requires_grad_())
        self.at += 1
        return self.list[self.at - 1]

    def weights(self, *shape):
        bound = math.sqrt(3 / math.prod(shape[1:]))
        return self.take(shape, lambda t: t.uniform_(-bound, bound))

    table = weights

    def bias(self, n):
        return self.take((n,), lambda t: t.zero_())

    def gamma(self, n):
        return self.take((n,), lambda t: t.fill_(1))

    beta = bias

    def dropout(self, x, rate):
        return F.dropout(x, rate)


def cross_entropy(scores, labels):
    return F.cross_entropy(scores, labels.flatten())


def classifier(net):
    return lambda p, x, limit: cross_entropy(net(p, x["pixels"], limit["label"]), x["label"])


def speech(p, x, limit):
    scores, lengths = nets.deepspeech2(p, x["spectrogram"], limit["text"])
    return nets.ctc(scores, lengths, x["text"], x["text length"]) / len(lengths)


def vectors(p, x, limit):
    scores = nets.dssm(p, x["around"], x["candidates"], limit["around"])
    return nets.sampled_logistic(scores) / len(scores)


def models():
    return {
        "resnext-110": classifier(nets.resnext_110),
        "resnet-50": classifier(nets.resnet_50),
        "inception-bn": classifier(nets.inception_bn),
        "kaggle": classifier(nets.kaggle),
        "cifar-small": classifier(nets.cifar_small),
        "cnn-rand": lambda p, x, limit: cross_entropy(nets.cnn_rand(p, x["tokens"], limit["label"], limit["tokens"]), x["label"]),
        "rnn-lstm": lambda p, x, limit: cross_entropy(nets.rnn_lstm(p, x["tokens"], limit["tokens"]), x["next"]),
        "dssm": vectors,
        "deepspeech2": speech,
        "seq2seq": lambda p, x, limit: cross_entropy(nets.seq2seq(p, x["words"], x["before"], limit["words"], limit["before"]), x["next"]),
    }


def optimizer(c, parameters):
    """The optimizer of package compute/optim in torch.optim."""
    common = {"lr": c["lr"], "weight_decay": c.get("weight_decay", 0)}
    if c["kind"] == "sgd":
        return torch.optim.SGD(parameters, momentum=c.get("momentum", 0), **common)
    if c["kind"] == "rmsprop":
        return torch.optim.RMSprop(parameters, alpha=c["rho"], eps=c["epsilon"], **common)
    return torch.optim.Adam(parameters, betas=(c["beta1"], c["beta2"]), eps=c["epsilon"], **common)


def clip(gradients, norm, limit):
    """Limits the norm over all gradients together, then each element; 0 stands for no limit."""
    if norm:
        total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients])).item()
        if total > norm:
            torch._foreach_mul_(gradients, norm / total)
    if limit:
        for g in gradients:
            g.clamp_(-limit, limit)


def values(t):
    """What there is of a parameter's gradient."""
    if t.grad.is_sparse:
        t.grad = t.grad.coalesce()
        return t.grad._values()
    return t.grad


class Training:
    """One variant of the model, its batch and its optimizer."""

    def __init__(self, config, channels_last, sparse):
        self.name = ("channels_last" if channels_last else "") + ("sparse" if sparse else "") or "plain"
        self.model = models()[config["model"]]
        self.clips = [config["optimizer"].get(name, 0) for name in ("clip_norm", "clip")]
        self.limits, self.inputs = {}, {}
        for i in config["inputs"]:
            shape, limit = [config["batch"], *i["shape"]], i.get("limit", 0)
            if i.get("zipf"):
                x = ((limit + 1) ** torch.rand(shape, dtype=torch.float64)).long().clamp_max(limit) - 1
            else:
                x = torch.randint(i["from"], limit, shape) if limit else torch.randn(shape)
            if channels_last and x.dim() == 4:
                x = x.to(memory_format=torch.channels_last)
            self.limits[i["name"]], self.inputs[i["name"]] = limit, x
        self.p = Parameters(channels_last, sparse)
        self.loss()  # makes the parameters
        self.optimizer = optimizer(config["optimizer"], self.p.list)

    def loss(self):
        self.p.at = 0
        return self.model(self.p, self.inputs, self.limits)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        if any(self.clips):
            clip([values(t) for t in self.p.list if t.grad is not None], *self.clips)
        self.optimizer.step()
        return loss.item()


def timed(training, steps):
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        loss = training.step()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "loss": loss}


def variants(config):
    pictures = any(len(i["shape"]) == 3 for i in config["inputs"])
    tables = config["model"] in ("rnn-lstm", "dssm") and config["optimizer"]["kind"] == "sgd"
    return itertools.product([False, True] if pictures else [False], [False, True] if tables else [False])


def fastest(config):
    best, trials = None, {}
    clock = "cpu" if config["threads"] == 1 else "wall"
    for v in variants(config):
        t = Training(config, *v)
        t.step()
        trials[t.name] = timed(t, 1)[clock]
        if trials[t.name] < 1:  # a short one may have been disturbed
            trials[t.name] = min(trials[t.name], timed(t, 1)[clock])
        if best is None or trials[t.name] < trials[best.name]:
            best = t
    return best, trials


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    config = json.loads(sys.stdin.readline())
    if config["model"] not in models():
        return say({"missing": True})
    torch.manual_seed(1)
    torch.set_num_threads(config["threads"])
    torch.set_float32_matmul_precision("highest")  # float32 as ours: no bfloat16 inside of products
    training, trials = fastest(config)
    built = torch.__config__.show()
    library = re.search(r"(?:MKL-DNN|oneDNN) v?([\d.]+)", built)
    capability = re.search(r"CPU capability usage: (\S+)", built)
    say({
        "torch": torch.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "onednn": library.group(1) if library else "",
        "blas": blas(built),
        "capability": capability.group(1) if capability else "",
        "variant": training.name,
        "trials": trials,
        "parameters": sum(t.numel() for t in training.p.list),
    })
    for line in sys.stdin:
        say(timed(training, int(line)))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    choose_kernels()
    import torch
    import torch.nn.functional as F

    import nets

    main()
