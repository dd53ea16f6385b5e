"""Checks that compare measurements with the estimates of libraries."""

from __future__ import annotations

from itertools import pairwise

from waywiser.errors import InputError
from waywiser.look import machine, pci, rdma, ucx
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root
from waywiser.profile import Profile, Series
from waywiser.results import Results
from waywiser.units import format_bytes, format_rate

_NEEDS = "needs a profile: run 'waywiser measure', or name its folder with --results"
_TOLERANCE = 1.25
_LARGE = 1 << 20


def profile(root: Root) -> Profile:
    """The measured profile of this machine. Raises Unknown if there is none."""
    if root.results is None:
        raise Unknown(_NEEDS)
    try:
        found = Results(root.results).profile
    except InputError as error:
        raise Unknown(f"{_NEEDS} ({error})") from error
    if found is None:
        raise Unknown(_NEEDS)
    if found.backend == "virtual_gpu" or found.simulated:
        raise Unknown(f"the profile is no measurement ({found.warning()}); {_NEEDS}")
    return found


def unverified_pairs(root: Root) -> tuple[list[str], int]:
    """Pairs of GPUs between which data was damaged, and the number of verified paths between GPUs."""
    try:
        found = profile(root)
    except Unknown:
        return [], 0
    wrong = {one.path.pair_text for one in found.rejected if _between_gpus(one.path.pair) and "intact" in one.reason}
    paths = [one for one in found.series if _between_gpus(one.path.pair)]
    wrong |= {one.path.pair_text for one in paths if any(not point.verified for point in one.points)}
    return sorted(wrong), len({one.path for one in paths if one.points})


def _between_gpus(pair: tuple[str, str]) -> bool:
    return pair[0] != pair[1] and all(place.startswith("gpu") for place in pair)


def large_rate(found: Profile, mechanism: str, source: str, destination: str, **parameters: str) -> float | None:
    """The best pair's bytes per second of large transfers by a mechanism between two kinds of memory."""
    rates = [
        max(point.rate for point in one.points if point.bytes >= _LARGE)
        for one in found.series
        if one.path.mechanism == mechanism
        and one.operation in ("latency", "streaming")
        and one.path.source.startswith(source)
        and one.path.destination.startswith(destination)
        and (source != destination or one.path.source != one.path.destination or source == "host")
        and parameters.items() <= dict(one.path.parameters).items()
        and any(point.bytes >= _LARGE for point in one.points)
    ]
    return max(rates, default=None)


def model_constants(found: Profile) -> dict[str, dict[str, float]]:
    """UCX variable -> measured bytes per second by word ("" for a plain rate)."""
    wanted = {
        "UCX_CUDA_COPY_BW": {
            "h2d": large_rate(found, "copy_engine", "host", "gpu"),
            "d2h": large_rate(found, "copy_engine", "gpu", "host"),
        },
        "UCX_CUDA_IPC_BW": {"": large_rate(found, "copy_engine", "gpu", "gpu")},
        "UCX_GDR_COPY_BW": {
            "put": large_rate(found, "bar_copy", "host", "gpu"),
            "get": large_rate(found, "bar_copy", "gpu", "host"),
        },
        "UCX_TCP_MAX_BW": {"": large_rate(found, "ucx", "host", "host", transports="tcp")},
        "UCX_POSIX_BW": {"": large_rate(found, "ucx", "host", "host", transports="posix")},
        "UCX_SYSV_BW": {"": large_rate(found, "ucx", "host", "host", transports="sysv")},
        "UCX_CMA_BW": {"": large_rate(found, "ucx", "host", "host", transports="cma")},
    }
    told = {name: {word: rate for word, rate in words.items() if rate} for name, words in wanted.items()}
    return {name: words for name, words in told.items() if words}


def estimates(root: Root) -> Finding:
    """D35."""
    known, measured = ucx.settings(root), model_constants(profile(root))
    wrong, right = [], 0
    for name, words in measured.items():
        assumed = ucx.rates(root.environment.get(name, known.get(name, "")))
        for word, rate in words.items():
            value = assumed.get(ucx.word_for(word, assumed))
            if not value:
                continue
            if not 1 / _TOLERANCE <= value / rate <= _TOLERANCE:
                label = f"{name}{':' if word else ''}{word}"
                wrong.append(f"{label} {format_rate(value)}, measured {format_rate(rate)}")
            else:
                right += 1
    if wrong:
        return warning(f"UCX estimates more than 25 % off: {machine.named(wrong)}")
    if right:
        return ok(f"{right} estimates of UCX are within 25 % of the measured rates")
    return unknown("needs a measured path for which UCX has a fixed estimate")


def cliffs(root: Root) -> Finding:
    """D36."""
    series = [one for one in profile(root).series if one.operation == "latency" and one.path.mechanism == "ucx"]
    if not series:
        return absent("no UCX path was measured")
    found = [text for one in series for text in _steps(one)]
    if found:
        return warning(f"steps in UCX's curves: {machine.named(found)}")
    return ok(f"no step in {len(series)} curves of UCX")


def _steps(one: Series) -> list[str]:
    """Sizes at which the time grows by more than twice the size ratio, or falls."""
    found = []
    for a, b in pairwise(one.points):
        growth, sizes = b.seconds / a.seconds, b.bytes / a.bytes
        if sizes <= 4 and (b.low > 2 * sizes * a.high or (b.high < 0.8 * a.low and a.bytes >= 64)):
            found.append(
                f"{one.path.label} {format_bytes(a.bytes)} to {format_bytes(b.bytes)}: {growth:.2g} times the time"
            )
    return found


def bar_mapping(root: Root) -> Finding:
    """D07."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    if not machine.module(root, "gdrdrv"):
        return absent("GDRCopy is not loaded (D06)")
    rates = model_constants(profile(root)).get("UCX_GDR_COPY_BW", {})
    if "put" not in rates:
        return unknown("needs bar_copy in the profile: run 'waywiser measure' again")
    said = f"put {format_rate(rates['put'])}" + (f", get {format_rate(rates['get'])}" if "get" in rates else "")
    return warning(f"{said}: the mapping is not write-combined, or the CPU is far") if rates["put"] < 2e9 else ok(said)


def _watched(root: Root) -> dict[str, object]:
    found = machine.json_file(root, "watch.json")
    if found is None:
        raise Unknown("needs byte counters of a run: 'waywiser run --watch PROGRAM'")
    return found


def loopback(root: Root) -> Finding:
    """D37."""
    if not rdma.devices(root):
        return absent("no RDMA device")
    watched = _watched(root)
    if watched.get("nodes") != 1:
        return unknown("the watched run had more than one node; needs one within a node")
    moved = watched.get("nic_bytes")
    if not isinstance(moved, (int, float)):
        return unknown("the watched run did not count the bytes of the NIC")
    if moved > 1 << 20:
        return problem(f"{format_bytes(int(moved))} went through the NIC in a run within one node")
    return ok("a run within one node moved nothing through the NIC")


def fallback(root: Root) -> Finding:
    """D43."""
    if not pci.gpus(root) and not rdma.devices(root):
        return absent("no GPU and no RDMA device: there is only one path")
    watched = _watched(root)
    fell, paths = watched.get("fell_back"), watched.get("roads")
    if not isinstance(fell, list) or not isinstance(paths, list):
        return unknown("the watched run did not say which paths it took")
    if fell:
        return problem(f"the watched run did not take {machine.named(str(path) for path in fell)}")
    return ok(f"the watched run took {machine.named(str(path) for path in paths)}")


def skew(root: Root) -> Finding:
    """D42."""
    return absent("one node; 'srun waywiser doctor' or --compare checks several")
