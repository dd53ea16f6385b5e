"""Finds the fastest algorithm of a library for each size of a collective, for the rules that the library reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from waywiser.apply.openmpi import COLLECTIVES, Rule, rules_file
from waywiser.apply.setting import Setting
from waywiser.look.root import Root
from waywiser.prove.benchmarks import Benchmark, Case
from waywiser.prove.chance import chance_faster
from waywiser.prove.prove import CHANCE, WORTH, Tell, Variant, measured
from waywiser.units import format_bytes, format_seconds

# Powers of two, like those of a profile: `verify` uses others.
TUNING_SIZES = (64, 1024, 8192, 65536, 524288, 4194304)
TEST = "all-reduce"
_DYNAMIC = "OMPI_MCA_coll_tuned_use_dynamic_rules"
_FORCED = "OMPI_MCA_coll_tuned_allreduce_algorithm"
_RULES = "OMPI_MCA_coll_tuned_dynamic_rules_filename"


@dataclass(frozen=True)
class Winner:
    """The fastest variant at a size, beyond chance, with its time and that of the default."""

    bytes: int
    name: str
    seconds: float
    default_seconds: float

    @property
    def text(self) -> str:
        """For people."""
        times = f"{format_seconds(self.seconds)}, default {format_seconds(self.default_seconds)}"
        return f"{format_bytes(self.bytes)}: {self.name} {times}"


def winners(variants: Sequence[Variant], benchmark: Benchmark, rounds: int, tell: Tell) -> dict[int, Winner | None]:
    """Size -> the variant that beats the default at this size beyond chance; None if no variant does."""
    base, again = Variant("default", {}), Variant("default again", {})
    first, *others, second = measured([base, *variants, again], benchmark, rounds, tell)
    cases: list[Case] = [case for case in first.rounds[0] if case[0] == TEST]
    found: dict[int, Winner | None] = {}
    for case in cases:
        both = first.times(case) + second.times(case)
        best = min(others, key=lambda one: median(one.times(case)))
        mine = best.times(case)
        sure = chance_faster(both, mine) < CHANCE / (len(cases) * len(others))
        worth = median(both) >= WORTH * median(mine)
        found[case[1]] = Winner(case[1], best.name, median(mine), median(both)) if sure and worth else None
    return found


def openmpi_algorithms(root: Root) -> dict[str, int]:
    """Names and numbers of the all-reduce algorithms of the installed Open MPI. Raises Unknown."""
    told = root.run("ompi_info", "--parsable", "--all")
    pattern = r"param:coll_tuned_allreduce_algorithm:enumerator:value:(\d{1,2}):(\w{1,40})$"
    rows = re.findall(pattern, told, re.MULTILINE)
    return {name.replace("_", " "): int(number) for number, name in rows if number != "0"}


def openmpi_rules(
    algorithms: Mapping[str, int], benchmark: Benchmark, ranks: int, rounds: int, file: Path, tell: Tell
) -> tuple[list[Setting], str]:
    """The settings that make Open MPI read `file`, and the file's content; none if its own choices are best."""
    variants = [Variant(name, {_DYNAMIC: "true", _FORCED: str(number)}) for name, number in algorithms.items()]
    found = winners(variants, benchmark, rounds, tell)
    rules: list[Rule] = []
    last = 0
    for size in sorted(found):
        winner = found[size]
        number = algorithms[winner.name] if winner else 0  # 0: Open MPI decides
        if number != last:
            rules.append(Rule(COLLECTIVES["allreduce"], ranks, size if rules else 0, number))
        last = number
    if not rules:
        return [], ""
    why = "; ".join(winner.text for winner in found.values() if winner)
    pairs = ((_DYNAMIC, "true", "false"), (_RULES, str(file.absolute()), ""))
    return [Setting("openmpi", *pair, why, "coll_tuned rules") for pair in pairs], rules_file(rules)
