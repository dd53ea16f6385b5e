"""Compares settings with the default in a contest of the library's benchmark; losers are dropped.

The base line runs twice in each round. The difference between the two runs is the noise that a setting has to beat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from waywiser import _core
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.errors import InputError
from waywiser.prove.benchmarks import Benchmark, Case, Times
from waywiser.prove.chance import chance_faster

AGAIN = "the same again"
WORTH = 1.03  # the smallest average gain that justifies a setting
LEAST_ROUNDS = 4  # with fewer, no result can be beyond chance
CHANCE = 0.05  # probability of a false "faster" in any case, over all cases together
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Variant:
    """Variables that were tried, with a name and the times of every round."""

    name: str
    variables: Mapping[str, str]
    rounds: tuple[Times, ...] = ()

    def times(self, case: Case) -> list[float]:
        """Seconds of one case in each round."""
        return [one[case] for one in self.rounds]


@dataclass(frozen=True)
class Verdict:
    """A variant compared with the base line. `gain`: geometric mean of the ratios of medians; above 1 is faster.

    `noise` is the same ratio, as a factor of at least 1, between the two runs of the base line.
    """

    gain: float
    better: int
    worse: int
    cases: int
    noise: float

    @property
    def wins(self) -> bool:
        """Faster beyond chance in some cases, slower in fewer, and on average by more than the noise."""
        return self.better > self.worse and self.gain >= max(WORTH, self.noise**2)

    @property
    def text(self) -> str:
        """For people."""
        counts = f"faster in {self.better} of {self.cases} cases, slower in {self.worse}"
        return f"{self.gain:.2f} x the speed (noise {self.noise:.2f} x), {counts}"


@dataclass(frozen=True)
class Proof:
    """All variants, the base line first; `kept` is the name of the winner, or of the base line if none won.

    `failed`: name of a variant with which the benchmark failed -> the benchmark's message.
    """

    variants: tuple[Variant, ...]
    kept: str
    verdicts: Mapping[str, Verdict]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The name of the base line."""
        return self.variants[0].name

    @property
    def cases(self) -> list[Case]:
        """Tests and sizes that every round of every variant has."""
        common = set.intersection(*(set(one) for variant in self.variants for one in variant.rounds))
        return [case for case in self.variants[0].rounds[0] if case in common]


def measured(
    variants: Sequence[Variant], benchmark: Benchmark, rounds: int, tell: Tell, failed: dict[str, str] | None = None
) -> list[Variant]:
    """Runs every variant once in each round of a contest.

    If the benchmark fails with a variant, the variant is left out and listed in `failed`. If it fails with the base
    line or its twin (the first and the last), this is an error. If interrupted after enough rounds, those count.
    """
    found: dict[int, list[Times]] = {index: [] for index in range(len(variants))}

    def take(index: int, _calls: int, _counts: bool) -> list[float] | None:
        variant = variants[index]
        tell(f"round {len(found[index]) + 1} of {rounds}: {variant.name}")
        try:
            found[index].append(benchmark(variant.variables))
        except InputError as error:
            if failed is None or index in (0, len(variants) - 1):
                raise
            tell(f"{variant.name}: {error}")
            failed[variant.name] = str(error)
            del found[index]
            return None
        return list(found[index][-1].values())

    try:
        _core.contest(len(variants), take, least=rounds, most=rounds, looks=0)
    except KeyboardInterrupt:
        number = min(map(len, found.values()))
        if number < LEAST_ROUNDS:
            raise
        tell(f"interrupted: judged by the {number} finished rounds")
    complete = min(map(len, found.values()))
    return [replace(variants[index], rounds=tuple(times[:complete])) for index, times in found.items()]


def verdict(base: Variant, again: Variant, other: Variant, cases: Sequence[Case]) -> Verdict:
    """The verdict on a variant, compared with both runs of the base line."""

    def gain(one: Variant, two: Variant) -> float:
        ratios = (math.log(median(one.times(case)) / median(two.times(case))) for case in cases)
        return math.exp(sum(ratios) / len(cases))

    both = replace(base, rounds=(*base.rounds, *again.rounds))
    noise = gain(base, again)
    least = CHANCE / len(cases)
    better = sum(chance_faster(both.times(case), other.times(case)) < least for case in cases)
    worse = sum(chance_faster(other.times(case), both.times(case)) < least for case in cases)
    return Verdict(gain(both, other), better, worse, len(cases), max(noise, 1 / noise))


def prove(groups: Sequence[Sequence[Setting]], benchmark: Benchmark, rounds: int, base: Variant, tell: Tell) -> Proof:
    """Tries each group alone against the base line, then all winners together; keeps the best."""
    proof = _judged(base, [_with(base, [group]) for group in groups], benchmark, rounds, tell)
    winners = [group for group in groups if (found := proof.verdicts.get(group[0].group)) and found.wins]
    if len(winners) < 2:
        return proof
    alone = [_with(base, [group]) for group in winners]
    try:
        second = _judged(base, [*alone, _with(base, winners)], benchmark, rounds, tell)
    except KeyboardInterrupt:
        tell("interrupted: the winners were not tried together")
        return proof
    verdicts = {**proof.verdicts, **second.verdicts}
    return Proof(second.variants, second.kept, verdicts, {**proof.failed, **second.failed})


def _with(base: Variant, groups: Sequence[Sequence[Setting]]) -> Variant:
    added = {one.name: one.value for group in groups for one in group}
    return Variant(" + ".join(group[0].group for group in groups), {**base.variables, **added})


def _judged(base: Variant, others: Sequence[Variant], benchmark: Benchmark, rounds: int, tell: Tell) -> Proof:
    failed: dict[str, str] = {}
    opponents = [base, *others, Variant(AGAIN, base.variables)]
    variants = measured(opponents, benchmark, rounds, tell, failed)
    base, *tried, again = variants
    cases = Proof(tuple(variants), "", {}).cases
    verdicts = {one.name: verdict(base, again, one, cases) for one in tried}
    winners = [name for name, one in verdicts.items() if one.wins]
    kept = max(winners, key=lambda name: verdicts[name].gain, default=base.name)
    return Proof(tuple(variants), kept, verdicts, failed)


def proved(settings: Settings, groups: Sequence[Sequence[Setting]], proof: Proof) -> Settings:
    """The settings without those that were tried and lost."""
    winners = set(proof.kept.split(" + ")) if proof.kept in proof.verdicts else set()
    tried = {one.name for group in groups for one in group}
    kept: list[Setting] = []
    left = list(settings.left_out)
    for one in settings.settings:
        if one.name not in tried:
            kept.append(one)
        elif one.group in winners:
            kept.append(replace(one, proof=proof.verdicts[proof.kept].text))
        else:
            left.append(LeftOut(one.target, one.name, one.value, _why_dropped(one.group, proof), refuted=True))
    return replace(settings, settings=tuple(kept), left_out=tuple(left), proved=all(one.proof for one in kept))


def with_verdicts_of(before: Settings | None, settings: Settings) -> Settings:
    """Applies earlier verdicts of `verify` to new settings with the same values and libraries."""
    if before is None:
        return settings

    def still(target: str) -> bool:
        return before.versions.get(target) == settings.versions.get(target)

    refuted = {(one.name, one.value): one for one in before.left_out if one.refuted and still(one.target)}
    proofs = {(one.name, one.value): one.proof for one in before.settings if still(one.target)}
    dropped = {(one.target, one.group) for one in settings.settings if (one.name, one.value) in refuted}
    kept: list[Setting] = []
    left = list(settings.left_out)
    for one in settings.settings:
        if (one.target, one.group) not in dropped:
            kept.append(replace(one, proof=proofs.get((one.name, one.value), "")))
        elif found := refuted.get((one.name, one.value)):
            left.append(found)
        else:
            left.append(LeftOut(one.target, one.name, one.value, "belongs to a group that did not win", refuted=True))
    proved_all = before.proved and all(one.proof for one in kept)
    return replace(settings, settings=tuple(kept), left_out=tuple(left), proved=proved_all)


def _why_dropped(group: str, proof: Proof) -> str:
    found = proof.verdicts.get(group)
    if found is None:
        return f"the benchmark fails with it: {proof.failed[group]}"
    return f"{'beaten by the kept settings' if found.wins else 'does not win beyond the noise'}: {found.text}"


def against(base: Variant, other: Variant, benchmark: Benchmark, rounds: int, tell: Tell) -> Proof:
    """Compares one variant with a base line."""
    proof = _judged(base, [other], benchmark, rounds, tell)
    if proof.failed:
        raise InputError(f"{other.name}: {proof.failed[other.name]}")
    return proof
