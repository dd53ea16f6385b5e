"""What `waywiser simulate step` is asked: a transformer, how it is shared out over GPUs, and how fast a GPU computes.

The formulas, each with its source:
- Operations of a step of T tokens: 6 P T for the weights (2 forward, 4 backward; Kaplan et al. 2020, section 2.1) and
  12 L h s T for attention (Narayanan et al., SC 2021, appendix: the s / 6h of its formula). With recomputation the
  forward pass runs twice: 4/3 of both.
- Tensor parallelism of t GPUs: two all-reduces of b s h elements in each layer and direction (Shoeybi et al. 2019,
  section 3), which nothing hides; a forward pass that is repeated repeats its own.
- Pipeline of p stages and m micro-batches, one forward and one backward in turns (1F1B): (p - 1) / m of the time of the
  micro-batches is idle (Narayanan et al., SC 2021, section 2.2). Between stages b s h / t elements go each way.
- Data parallelism: an all-reduce of each bucket of gradients as soon as the backward pass of the last micro-batch has
  made them (Li et al., VLDB 2020, section 3.2). Sharded (FSDP): a layer's parameters are gathered before its forward
  and before its backward pass, and its gradients reduced and scattered after it (Zhao et al., VLDB 2023, section 3).
- Memory: 16 bytes a parameter for parameters, gradients and Adam's states with 16-bit arithmetic (Rajbhandari et al.,
  SC 2020, section 3.1), and with 32-bit arithmetic, too (4 of each); sharding leaves a GPU its part. Activations come
  on top.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from waywiser.errors import InputError
from waywiser.lists import words_in
from waywiser.topology.data_sheets import peak_of
from waywiser.units import parse_bytes

PRECISIONS = {"bf16": 2, "fp16": 2, "fp32": 4}
BYTES_OF_STATE = 16
# What DDP of PyTorch takes unless told otherwise (bucket_cap_mb=25).
BUCKET = 25 << 20
UTILISATION = 0.4
_MOST = 1e18
_YES = {"yes": True, "no": False}


@dataclass(frozen=True)
class Model:
    """A transformer and the batch of a step, in sequences, over all GPUs."""

    parameters: int
    layers: int
    hidden: int
    sequence: int
    batch: int
    precision: str = "bf16"
    recompute: bool = False

    @property
    def element(self) -> int:
        """Bytes of a parameter, a gradient and an activation."""
        return PRECISIONS[self.precision]

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence

    @property
    def operations(self) -> float:
        """Of a step, forward and backward, over all GPUs."""
        once = 6.0 * self.parameters * self.tokens + 12.0 * self.layers * self.hidden * self.sequence * self.tokens
        return once * (4 / 3 if self.recompute else 1)

    @property
    def forward_share(self) -> float:
        """Of the operations: a backward pass has twice those of a forward one, and recomputation repeats that."""
        return 1 / 4 if self.recompute else 1 / 3


@dataclass(frozen=True)
class Layout:
    """How the model is shared out: tensor innermost, data next, pipeline outermost."""

    data: int
    tensor: int = 1
    pipeline: int = 1
    micro: int = 1  # sequences of a micro-batch
    shard: bool = False
    bucket: int = BUCKET
    overlap: bool = True

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline


@dataclass(frozen=True)
class Speed:
    """Of a GPU: operations a second by its data sheet, and the share of them that a training program reaches."""

    peak: float
    utilisation: float
    source: str

    @property
    def reached(self) -> float:
        return self.peak * self.utilisation


def _words(text: str, option: str, known: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words_in(text):
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            examples = ",".join(f"{one}={example}" for one, example in known.items())
            raise InputError(f"{option} {word[:60]!r}: write some of {examples}")
        if name in found:
            raise InputError(f"{option}: {name} is given twice")
        found[name] = value
    return found


def _number(found: dict[str, str], name: str, option: str, default: float | None = None, most: float = _MOST) -> float:
    """From just above 0 to `most`; "7e9", "7B", "350M"."""
    if name not in found:
        if default is None:
            raise InputError(f"{option}: {name} is missing")
        return default
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?(?:e\d{1,2})?)([KMGBT]?)", found[name])
    value = float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}[match[2]] if match else 0.0
    if not 0 < value <= most:
        raise InputError(f"{option}: {name} must be a number above 0 and at most {most:g}, not {found[name][:40]!r}")
    return value


def _whole(found: dict[str, str], name: str, option: str, default: int | None = None) -> int:
    value = _number(found, name, option, default)
    if value != int(value):
        raise InputError(f"{option}: {name} must be a whole number, not {found[name][:40]!r}")
    return int(value)


def _flag(found: dict[str, str], name: str, option: str, default: bool) -> bool:
    value = found.get(name, "yes" if default else "no")
    if value not in _YES:
        raise InputError(f"{option}: {name} must be yes or no, not {value[:40]!r}")
    return _YES[value]


_MODEL = {
    "parameters": "7e9", "layers": "32", "hidden": "4096", "sequence": "2048", "batch": "512", "precision": "bf16",
    "recompute": "no",
}  # fmt: skip
_LAYOUT = {
    "tensor": "1", "pipeline": "1", "micro": "1", "shard": "no", "bucket": "25M", "overlap": "yes",
}  # fmt: skip
_SPEED = {"peak": "989e12", "utilisation": "0.4"}


def model_in(text: str) -> Model:
    """ "parameters=7e9,layers=32,sequence=2048,batch=512" -> a model. Raises InputError."""
    option = "--model"
    found = _words(text, option, _MODEL)
    parameters, layers = _whole(found, "parameters", option), _whole(found, "layers", option)
    precision = found.get("precision", "bf16")
    if precision not in PRECISIONS:
        raise InputError(f"{option}: precision is one of {', '.join(PRECISIONS)}, not {precision[:40]!r}")
    # Without it: 12 h^2 parameters a layer, as in a transformer whose inner width is 4 h.
    hidden = _whole(found, "hidden", option, max(1, round(math.sqrt(parameters / (12 * layers)))))
    sequence, batch = _whole(found, "sequence", option, 2048), _whole(found, "batch", option)
    return Model(parameters, layers, hidden, sequence, batch, precision, _flag(found, "recompute", option, False))


def layout_in(text: str, model: Model, gpus: int, gpus_of_node: int) -> Layout:
    """ "tensor=8,pipeline=2,shard=no" on so many GPUs -> how the model is shared out. Raises InputError."""
    option = "--parallel"
    found = _words(text, option, _LAYOUT)
    tensor, pipeline = _whole(found, "tensor", option, 1), _whole(found, "pipeline", option, 1)
    micro = _whole(found, "micro", option, 1)
    if gpus_of_node % tensor:
        raise InputError(f"{option}: tensor={tensor} does not divide the {gpus_of_node} GPUs of a node")
    if gpus % (tensor * pipeline):
        raise InputError(f"{option}: tensor={tensor},pipeline={pipeline} does not divide {gpus} GPUs")
    data = gpus // (tensor * pipeline)
    stage = tensor * data
    if stage % gpus_of_node and gpus_of_node % stage:
        raise InputError(f"{option}: a stage of {stage} GPUs neither fills nodes of {gpus_of_node} nor divides one")
    if model.layers % pipeline:
        raise InputError(f"{option}: pipeline={pipeline} does not divide the {model.layers} layers")
    if model.batch % (data * micro):
        raise InputError(f"{option}: micro={micro} times {data} data-parallel replicas does not divide {model.batch}")
    shard = _flag(found, "shard", option, False)
    if shard and pipeline > 1:
        raise InputError(f"{option}: shard=yes is for pipeline=1")
    bucket = parse_bytes(found["bucket"]) if "bucket" in found else BUCKET
    if bucket < 1:
        raise InputError(f"{option}: bucket must be a size above 0, such as 25M")
    return Layout(data, tensor, pipeline, micro, shard, bucket, _flag(found, "overlap", option, True))


def speed_in(text: str, topology: Any, precision: str) -> Speed:
    """ "peak=989e12,utilisation=0.4" -> the speed of a GPU; the peak of 16-bit arithmetic is known for some GPUs.

    Raises InputError."""
    option = "--gpu"
    found = _words(text, option, _SPEED)
    utilisation = _number(found, "utilisation", option, UTILISATION, 1)
    if "peak" in found:
        return Speed(_number(found, "peak", option, None, 1e21), utilisation, "--gpu")
    name = topology.device(topology.ids("gpu")[0]).name
    known = peak_of(name) if PRECISIONS[precision] == 2 else None
    if known is None:
        raise InputError(f"{option}: the rate of a {name} with {precision} is not known: write {option} peak=100e12")
    return Speed(known[0], utilisation, known[1])
