"""What `waywiser simulate step` is asked: a transformer, and how it is shared out over GPUs.

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
- Interleaved stages, of v parts each: the idle part is (p - 1) / (v m), and v times as many activations go from stage
  to stage (Narayanan et al., SC 2021, section 2.2).
- Sequence parallelism of s GPUs: in each layer and direction two all-to-alls, of 3 b s h elements before attention and
  of b s h after it, shared out over the GPUs (Jacobs et al. 2023, DeepSpeed-Ulysses, section 3.2).
- Experts: of E experts a token takes k. With P parameters, of which a token uses A, each expert has (P - A) / (E - k);
  operations count A. Expert parallelism: two all-to-alls of k b s h elements a layer and direction (Lepikhin et al.
  2021, GShard, section 3.2); the gradients of an expert are summed over the GPUs that have it. Every layer has experts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from waywiser.errors import InputError
from waywiser.simulator.step_words import flag, pairs_in, whole
from waywiser.units import parse_bytes

PRECISIONS = {"bf16": 2, "fp16": 2, "fp32": 4}
BYTES_OF_STATE = 16
# What DDP of PyTorch takes unless told otherwise (bucket_cap_mb=25).
BUCKET = 25 << 20
PLACEMENTS = tuple("-".join(order) for order in itertools.permutations(("tensor", "data", "pipeline")))


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
    experts: int = 1
    chosen: int = 1  # experts of a token
    active: int = 0  # parameters that a token uses; 0: all
    gradients: str = ""  # as they are summed; empty: `precision`

    @property
    def of_experts(self) -> int:
        """Parameters of all experts."""
        if self.experts == 1:
            return 0
        return (self.parameters - self.active) * self.experts // (self.experts - self.chosen)

    @property
    def element(self) -> int:
        """Bytes of a parameter and an activation on their way."""
        return PRECISIONS[self.precision]

    @property
    def gradient(self) -> int:
        """Bytes of a gradient on its way."""
        return PRECISIONS[self.gradients or self.precision]

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence

    @property
    def operations(self) -> float:
        """Of a step, forward and backward, over all GPUs."""
        once = (
            6.0 * (self.active or self.parameters) * self.tokens
            + 12.0 * self.layers * self.hidden * self.sequence * self.tokens
        )
        return once * (4 / 3 if self.recompute else 1)

    @property
    def forward_share(self) -> float:
        """Of the operations: a backward pass has twice those of a forward one, and recomputation repeats that."""
        return 1 / 4 if self.recompute else 1 / 3


@dataclass(frozen=True)
class Layout:
    """How the model is shared out; `placement` names the dimensions from the innermost on."""

    data: int
    tensor: int = 1
    pipeline: int = 1
    micro: int = 1  # sequences of a micro-batch
    shard: bool = False
    bucket: int = BUCKET
    overlap: bool = True
    sequence: int = 1
    expert: int = 1
    interleave: int = 1  # parts of a stage
    placement: str = PLACEMENTS[0]

    @property
    def replicas(self) -> int:
        """GPUs that have the same dense parameters, and sum up their gradients."""
        return self.data * self.sequence

    @property
    def gpus(self) -> int:
        return self.replicas * self.tensor * self.pipeline


_MODEL = {
    "parameters": "7e9", "layers": "32", "hidden": "4096", "sequence": "2048", "batch": "512", "precision": "bf16",
    "recompute": "no", "gradients": "fp32", "experts": "8", "chosen": "2", "active": "2e9",
}  # fmt: skip
_LAYOUT = {
    "tensor": "1", "pipeline": "1", "micro": "1", "shard": "no", "bucket": "25M", "overlap": "yes", "sequence": "1",
    "expert": "1", "interleave": "1", "placement": PLACEMENTS[0],
}  # fmt: skip


def model_in(text: str) -> Model:
    """ "parameters=7e9,layers=32,sequence=2048,batch=512" -> a model. Raises InputError."""
    option = "--model"
    found = pairs_in(text, option, _MODEL)
    parameters, layers = whole(found, "parameters", option), whole(found, "layers", option)
    precision = found.get("precision", "bf16")
    gradients = found.get("gradients", precision)
    for name, one in (("precision", precision), ("gradients", gradients)):
        if one not in PRECISIONS:
            raise InputError(f"{option}: {name} is one of {', '.join(PRECISIONS)}, not {one[:40]!r}")
    # Without it: 12 h^2 parameters a layer, as in a transformer whose inner width is 4 h.
    hidden = whole(found, "hidden", option, max(1, round(math.sqrt(parameters / (12 * layers)))))
    sequence, batch = whole(found, "sequence", option, 2048), whole(found, "batch", option)
    recompute, experts = flag(found, "recompute", option, False), _experts(found, parameters)
    return Model(parameters, layers, hidden, sequence, batch, precision, recompute, *experts, gradients)


def _experts(found: dict[str, str], parameters: int) -> tuple[int, int, int]:
    """How many, how many of them a token takes, and the parameters that it uses."""
    option = "--model"
    experts = whole(found, "experts", option, 1)
    if experts == 1:
        if found.keys() & {"chosen", "active"}:
            raise InputError(f"{option}: chosen and active are for a model with experts=8")
        return 1, 1, 0
    chosen, active = whole(found, "chosen", option), whole(found, "active", option)
    if not chosen < experts:
        raise InputError(f"{option}: chosen={chosen} must be below experts={experts}")
    if not active < parameters or (parameters - active) * experts > parameters * (experts - chosen):
        least = -(-parameters * chosen // experts)
        raise InputError(f"{option}: active must be from {least:.3g} to below {parameters:.3g} parameters")
    return experts, chosen, active


def layout_in(text: str, model: Model, gpus: int, gpus_of_node: int) -> Layout:
    """ "tensor=8,pipeline=2,shard=no" on so many GPUs -> how the model is shared out. Raises InputError."""
    option = "--parallel"
    found = pairs_in(text, option, _LAYOUT)
    tensor, pipeline = whole(found, "tensor", option, 1), whole(found, "pipeline", option, 1)
    micro, sequence = whole(found, "micro", option, 1), whole(found, "sequence", option, 1)
    expert, interleave = whole(found, "expert", option, 1), whole(found, "interleave", option, 1)
    placement = found.get("placement", PLACEMENTS[0])
    if placement not in PLACEMENTS:
        raise InputError(f"{option}: placement is one of {', '.join(PLACEMENTS)}, not {placement[:40]!r}")
    if gpus_of_node % tensor:
        raise InputError(f"{option}: tensor={tensor} does not divide the {gpus_of_node} GPUs of a node")
    if gpus % (tensor * pipeline):
        raise InputError(f"{option}: tensor={tensor},pipeline={pipeline} does not divide {gpus} GPUs")
    replicas = gpus // (tensor * pipeline)
    if replicas % sequence or model.sequence % sequence:
        raise InputError(
            f"{option}: sequence={sequence} does not divide {replicas} GPUs and {model.sequence} tokens of a sequence"
        )
    data = replicas // sequence
    stage = tensor * replicas
    if placement == PLACEMENTS[0] and stage % gpus_of_node and gpus_of_node % stage:
        raise InputError(f"{option}: a stage of {stage} GPUs neither fills nodes of {gpus_of_node} nor divides one")
    if replicas % expert or model.experts % expert:
        raise InputError(f"{option}: expert={expert} does not divide {replicas} GPUs and experts={model.experts}")
    if model.layers % (pipeline * interleave):
        parts = f"pipeline={pipeline}{f',interleave={interleave}' if interleave > 1 else ''}"
        raise InputError(f"{option}: {parts} does not divide the {model.layers} layers")
    if interleave > 1 and (pipeline == 1 or model.batch // (data * micro) % pipeline):
        raise InputError(f"{option}: interleave needs stages, and micro-batches that are a multiple of them")
    if model.batch % (data * micro):
        raise InputError(f"{option}: micro={micro} times {data} data-parallel replicas does not divide {model.batch}")
    shard = flag(found, "shard", option, False)
    if shard and pipeline > 1:
        raise InputError(f"{option}: shard=yes is for pipeline=1")
    bucket = parse_bytes(found["bucket"]) if "bucket" in found else BUCKET
    if bucket < 1:
        raise InputError(f"{option}: bucket must be a size above 0, such as 25M")
    overlap = flag(found, "overlap", option, True)
    more = (sequence, expert, interleave, placement)
    layout = Layout(data, tensor, pipeline, micro, shard, bucket, overlap, *more)
    if shard and expert > 1:
        raise InputError(f"{option}: shard=yes is for expert=1")
    return layout
