"""Tables in GPU memory: rows whose parts are known, unequal all-to-alls beside NCCL, a merge, a limit of memory, skews.

Usage: waywiser run -n 2 python benchmarks/table_gpu.py [--json FILE] [--scale N] [--only NAMES] [--cases N]; a GPU for
each rank and PyTorch (without a GPU, arrays of NumPy at `--scale 4096` or more: to test it). Each row that comes is
compared with what was sent, in every round. A rate is that of one direction between two GPUs: the bytes that a rank
sends to others over the time of the slowest rank, the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import waywiser
from waywiser import table
from waywiser.table import column_rounds
from waywiser.table.column_join import joined
from waywiser.table.column_rounds import by_keys, rounds
from waywiser.table.columns import library_of

ROUNDS, MATCH = 5, 0.3
SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # odd: times it is a bijection


class Bench:
    def __init__(self, group: waywiser.Group, scale: int) -> None:
        self.group, self.scale, self.found = group, scale, dict[str, Any]()
        try:
            import torch

            self.torch = torch if torch.cuda.is_available() else None
        except ImportError:
            self.torch = None
        if self.torch is not None:
            self.device = self.torch.device("cuda", group.local_rank)
            self.torch.cuda.set_device(self.device)

    def numbered(self, first: int, count: int) -> Any:
        if self.torch is None:
            return numpy.arange(first, first + count)
        return self.torch.arange(first, first + count, device=self.device)

    def joined(self, arrays: list[Any]) -> Any:
        return numpy.concatenate(arrays) if self.torch is None else self.torch.cat(arrays)

    def complete(self) -> None:
        if self.torch is not None:
            self.torch.cuda.synchronize()

    def require(self, same: bool, what: str) -> None:
        """At all ranks."""
        if int(self.group.all_reduce(numpy.array([int(not same)]))[0]):
            raise SystemExit(f"{what}: other rows than those that were sent")

    def equal(self, one: Any, other: Any) -> bool:
        if self.torch is None:
            return bool(numpy.array_equal(one, other))
        return bool(self.torch.equal(one, other))

    def slowest(self, seconds: float) -> float:
        return float(self.group.all_reduce(numpy.array([seconds]), op="max")[0])

    def timed(self, call: Callable[[], object]) -> tuple[float, Any]:
        self.complete()
        self.group.barrier()
        begun = time.perf_counter()
        result = call()
        self.complete()
        return self.slowest(time.perf_counter() - begun), result

    def say(self, name: str, line: str, value: Any) -> None:
        self.found.setdefault(name, []).append(value)
        if self.group.rank == 0:
            print(f"{name}: {line}", flush=True)

    # Two directions of bare messages, as fast as the group has them.
    def link(self, size: int) -> float:
        one, other = self.numbered(self.group.rank, size // 8), self.numbered(0, size // 8)
        to = (self.group.rank + 1) % self.group.size
        source = (self.group.rank - 1) % self.group.size

        def both() -> None:
            come, gone = self.group.start_recv(other, source), self.group.start_send(one, to)
            come.wait(), gone.wait()

        both()
        seconds = statistics.median(self.timed(both)[0] for _ in range(ROUNDS))
        self.require(self.equal(other, self.numbered(source, size // 8)), "link")
        self.say("link", f"{size >> 20} MiB both ways {size / seconds / 1e9:.1f} GB/s a direction", size / seconds)
        return size / seconds

    def pieces(self, name: str, sizes: list[int], memory: bool = False) -> None:
        """`sizes`: the bytes of pieces, in turns to each rank; half of what comes fits, with `memory`. On GPUs they go
        from where they lie and gathered before, in turns, whatever their size.
        """
        group, count, usual = self.group, (4 << 30) // self.scale // 8, column_rounds._APART
        ways = {"gathered": 1 << 60} | ({"straight": 1} if self.torch is not None else {})
        for size in sizes:
            rows = max(1, size // 8)
            lengths = numpy.full(count // rows, rows)
            parts = group.size * (16 if memory else 1)
            to = numpy.arange(len(lengths)) % parts
            data = {"v": self.numbered(group.rank * count, len(lengths) * rows)}
            wanted = {part: self.of_pieces(count, lengths, to, part) for part in range(group.rank, parts, group.size)}
            limit = 4 * count if memory and self.torch is not None else None
            times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            spilled = 0
            for turn in range(ROUNDS + 1):
                for way, column_rounds._APART in ways.items():
                    moved = table.ColumnShuffle(group, data, parts=parts, memory=limit)
                    seconds, _ = self.timed(lambda: moved.insert(data, rows=lengths, to=to))  # noqa: B023
                    back, come = self.timed(lambda: dict(moved))  # noqa: B023
                    self.require(all(self.equal(come[part]["v"], wanted[part]) for part in wanted), name)
                    spilled = moved.spilled
                    if turn:
                        times[way].append((seconds, back))
            column_rounds._APART = usual
            sent = 8 * count * (group.size - 1) / group.size
            for way, of_way in times.items():
                middle, back = (statistics.median(each) for each in zip(*of_way, strict=True))
                line = f"pieces of {size} B, {way}: {sent / middle / 1e9:.1f} GB/s a direction, {middle * 1e3:.2f} ms"
                value = {"piece": size, "way": way, "bytes_out": sent, "seconds": middle, "seconds_all": of_way}
                if memory:
                    rates = spilled / middle / 1e9, spilled / back / 1e9
                    line += f"; {spilled >> 20} MiB to the host at {rates[0]:.1f} GB/s, back at {rates[1]:.1f}"
                    value |= {"spilled": spilled, "seconds_back": back}
                self.say(name, line, value)

    def of_pieces(self, count: int, lengths: Any, to: Any, part: int) -> Any:
        begins = numpy.cumsum(lengths) - lengths
        chosen = numpy.flatnonzero(to == part)
        if len(chosen) == 0:
            return self.numbered(0, 0)
        if self.torch is None or len({*lengths.tolist()}) > 1:
            runs = [self.numbered(source * count + int(begins[i]), int(lengths[i]))
                    for source in range(self.group.size) for i in chosen]  # fmt: skip
            return self.joined(runs)
        firsts = self.torch.from_numpy(begins[chosen]).to(self.device).reshape(-1, 1)
        one = (firsts + self.numbered(0, int(lengths[0]))).reshape(-1)
        return self.joined([one + source * count for source in range(self.group.size)])

    def unequal(self, sizes: list[int]) -> None:
        """All-to-alls of blocks in the proportion 3 : 5 : 7 and so on, in turns with NCCL's."""
        group = self.group
        peer = None
        if self.torch is not None:
            import torch.distributed as peer

            peer.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{self.port()}", rank=group.rank,
                                    world_size=group.size, device_id=self.device)  # fmt: skip
        for size in sizes:
            shares = [[3 + 2 * ((here + to) % group.size) for to in range(group.size)] for here in range(group.size)]
            blocks = [[size // 8 * each // sum(of) for each in of] for of in shares]
            give, take = blocks[group.rank], [of[group.rank] for of in blocks]
            data = self.numbered(group.rank << 40, sum(give))
            out, other = self.numbered(0, sum(take)), self.numbered(0, sum(take))
            wanted = self.joined([self.numbered((source << 40) + sum(of[: group.rank]), of[group.rank])
                                  for source, of in enumerate(blocks)])  # fmt: skip
            calls: dict[str, Callable[[], object]] = {"group": lambda: group.all_to_all_v(data, give, out, take)}  # noqa: B023
            if peer is not None:
                calls["nccl"] = lambda: peer.all_to_all_single(other, data, take, give)  # noqa: B023
            repeat = max(1, min(50, (256 << 20) // size))
            times: dict[str, list[float]] = {name: [] for name in calls}
            for turn in range(2 * ROUNDS + 1):
                for name, call in calls.items():
                    (out if name == "group" else other)[:] = 0
                    seconds, _ = self.timed(lambda: [call() for _ in range(repeat)])  # noqa: B023
                    self.require(self.equal(out if name == "group" else other, wanted), name)
                    if turn:
                        times[name].append(seconds / repeat)
            middles = {name: statistics.median(each) for name, each in times.items()}
            most = 8 * max(sum(each for to, each in enumerate(of) if to != source) for source, of in enumerate(blocks))
            words = [f"{name} {each * 1e6:.1f} us, {most / each / 1e9:.1f} GB/s" for name, each in middles.items()]
            line = ", ".join(words)
            if "nccl" in middles:
                line += f": {middles['nccl'] / middles['group']:.2f} times NCCL's"
            self.say("unequal", f"{size} B a rank: {line}", {"bytes": size, "most_out": most, "seconds": times})
        if peer is not None:
            peer.destroy_process_group()

    def port(self) -> int:
        import socket

        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return int(self.group.broadcast(numpy.array([one.getsockname()[1]]))[0])

    def merge(self) -> None:
        """Two tables of 100 million rows a rank, a key and a number of 8 bytes each, of which 30 % meet."""
        group, rows = self.group, 100_000_000 // self.scale
        whole, matching = rows * group.size, int(rows * MATCH)
        step = whole // 2 | 1
        while numpy.gcd(step, whole) != 1:
            step += 2
        partners = self.numbered(group.rank * matching, matching) * step % whole
        alone = self.numbered(whole + group.rank * (rows - matching), rows - matching)
        ids = self.numbered(group.rank * rows, rows)
        left, right = {"k": ids * SPREAD, "l": ids}, {"k": self.joined([partners, alone]) * SPREAD, "r": ids}
        library = library_of(left)
        times = []
        for turn in range(ROUNDS + 1):
            cut, both = self.timed(lambda: [by_keys(library, each, [each["k"]], group.size) for each in (left, right)])
            exchanged, met = self.timed(lambda: [next(rounds(group, each, group.size))[1] for each in both])  # noqa: B023
            local, result = self.timed(lambda: joined(library, *met, "k", "k", "inner", "_right"))  # noqa: B023
            whole_merge, again = self.timed(lambda: table.merge(group, left, right, "k"))
            for each in (result, again):
                self.check_merge(each, rows, matching, step, whole)
            if turn:
                times.append((cut, exchanged, local, whole_merge))
        cut, exchanged, local, all_of_it = (statistics.median(each) for each in zip(*times, strict=True))
        share = exchanged / (cut + exchanged + local)
        self.say(
            "merge",
            f"{rows} rows of each table a rank: by part {cut * 1e3:.1f} ms, "
            f"exchange {exchanged * 1e3:.1f} ms ({share:.0%}), "
            f"join by sorting ({library.name}) {local * 1e3:.1f} ms; the whole call {all_of_it * 1e3:.1f} ms",
            {"rows": rows, "seconds": times, "exchange_share": share},
        )

    def check_merge(self, result: Any, rows: int, matching: int, step: int, whole: int) -> None:
        """Each row's numbers belong together, and their sums are those of all rows that meet."""
        ids, row = result["l"], result["r"] % rows
        partner = (result["r"] // rows * matching + row) * step % whole
        same = bool((row < matching).all()) and self.equal(ids, partner) and self.equal(result["k"], ids * SPREAD)
        mine = [len(ids), int(result["r"].sum())]
        told = [int(each) for each in self.group.all_reduce(numpy.array(mine))]
        size = self.group.size
        wanted = [matching * size, matching * (rows * size * (size - 1) + size * (matching - 1)) // 2]
        self.require(same and told == wanted, "merge")

    def skews(self, cases: int, rate: float) -> None:
        """Random shares of parts and ranks; in every fourth, half of all rows belong to one part. The bound: the most
        bytes that a rank sends to others, or gets, at the rate of bare messages.
        """
        group, ratios = self.group, []
        for case in range(cases):
            chance = numpy.random.default_rng(case)  # the same at all ranks
            parts = int(chance.integers(1, 5)) * group.size
            runs = int(chance.integers(4, 64))
            weights = chance.dirichlet(numpy.full(parts, chance.choice([0.2, 1, 10])))
            if case % 4 == 0:
                weights = weights / 2
                weights[int(chance.integers(parts))] += 0.5
            owners = chance.choice(parts, (group.size, runs), p=weights / weights.sum())
            lengths = chance.multinomial((1 << 30) // self.scale // 8, chance.dirichlet(numpy.ones(runs)), group.size)
            to, rows = owners[group.rank], lengths[group.rank]
            count = int(lengths.sum(1).max())
            data = {"v": self.numbered(group.rank * count, int(rows.sum()))}
            flows = numpy.zeros((group.size, group.size))
            for source in range(group.size):
                numpy.add.at(flows[source], owners[source] % group.size, 8 * lengths[source])
            numpy.fill_diagonal(flows, 0)
            bound = max(flows.sum(0).max(), flows.sum(1).max()) / rate
            best = float("inf")
            for _ in range(2):
                moved = table.ColumnShuffle(group, data, parts=parts)
                seconds, _ = self.timed(lambda: moved.insert(data, rows=rows, to=to))  # noqa: B023
                best = min(best, seconds)
                for part, come in moved:
                    cuts = [
                        (source, i) for source in range(group.size) for i in numpy.flatnonzero(owners[source] == part)
                    ]
                    runs_of = [self.numbered(source * count + int(lengths[source][:i].sum()), int(lengths[source][i]))
                               for source, i in cuts]  # fmt: skip
                    if not self.equal(come["v"], self.joined(runs_of) if cuts else come["v"][:0]):
                        raise SystemExit("skews: other rows than those that were sent")
            if bound > 0:
                ratios.append(best / bound)
        within = sum(ratio <= 1.25 for ratio in ratios) / max(1, len(ratios))
        line = f"{within:.0%} of {len(ratios)} within 1.25 of their bounds, "
        line += f"median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}"
        self.say("skews", line, {"within": within, "ratios": ratios})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--only", default="pieces,unequal,merge,memory,skews")
    parser.add_argument("--cases", type=int, default=200, help="random skews")
    options = parser.parse_args()
    only = options.only.split(",")
    with waywiser.join(timeout=120) as group:
        bench, small = Bench(group, options.scale), 1 if options.scale == 1 else 16
        rate = bench.link((512 << 20) // options.scale)
        if "pieces" in only:
            bench.pieces("pieces", [(4 << 20) // small, (256 << 10) // small, (64 << 10) // small])
        if "unequal" in only:
            bench.unequal([4**power for power in range(8, 16) if 4**power * options.scale <= 1 << 30])
        if "merge" in only:
            bench.merge()
        if "memory" in only:
            bench.pieces("memory", [(4 << 20) // small], memory=True)
        if "skews" in only:
            bench.skews(options.cases, rate)
        if options.json and group.rank == 0:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(bench.found, file)


if __name__ == "__main__":
    main()
