"""A machine from the names of its parts: devices with the figures of data sheets, hung together as the options say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.builder import TopologyBuilder, cpulist
from waywiser.topology.data_sheets import Part, part_named

MOST_OF_A_KIND = 64
NVLINKS = ("nvswitch", "all", "cube-mesh", "none")
PCIE = ("gen3", "gen4", "gen5", "gen6")
NICS_AT = ("switch", "root")
SOCKET_SHARE = MEMORY_SHARE = 0.8
PORT_SHARE = 0.97
_GENERATION_NAMES: dict[float, str] = {100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
# NVLinks of a DGX-1 with V100, as published: pair of GPUs, links side by side.
_CUBE_MESH = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """So many parts of one type."""

    count: int
    part: Part
    asked: str
    gigabits: float = 0  # of a NIC's port


@dataclass(frozen=True)
class NewMachine:
    """What `waywiser machine new` is asked for. Empty words and None stand for what the parts suggest."""

    cpus: str
    gpus: str = ""
    nics: str = ""
    pcie: str = ""
    nvlinks: str = ""
    switches: int | None = None
    roots: int | None = None
    nics_at: str = "switch"
    name: str = ""
    gdr: bool = True  # whether NICs can read and write the memory of GPUs

    def topology(self) -> _core.Topology:
        """The machine. Raises InputError, one line that names the option."""
        return _Assembly(self).finish()


def parts_in(text: str, kind: str, what: str) -> list[Parts]:
    """ "8xCX7,1x25GbE" -> parts; a NIC may have the rate of its port in Gb/s behind it: "2xCX7@200"."""
    return [_parts_of(word.strip(), kind, what) for word in text.split(",")]


def _parts_of(text: str, kind: str, what: str) -> Parts:
    found = re.fullmatch(r"(\d{1,3})\s*[x*]\s*([^@]*[^@\s])\s*(?:@\s*(\d{1,4}(?:\.\d)?))?", text)
    if not found or (found[3] and kind != "nic"):
        rate = " or COUNTxPART@GBITS" if kind == "nic" else ""
        raise InputError(f"{what}: {text[:60]!r} is not COUNTxPART{rate}, such as {_EXAMPLES[kind]}")
    count = int(found[1])
    if not 1 <= count <= MOST_OF_A_KIND:
        raise InputError(f"{what}: from 1 to {MOST_OF_A_KIND} parts of a kind, not {count}")
    part = part_named(kind, found[2], what)
    most = float(part.figures.get("port", 0))
    gigabits = float(found[3] or most)
    if kind == "nic" and not 0 < gigabits <= most:
        raise InputError(f"{what}: the port of a {part.name} has {most:g} Gb/s at most ({part.source}), not {found[3]}")
    return Parts(count, part, found[2], gigabits)


_EXAMPLES = {"gpu": "8xH100", "cpu": "2x8480C", "nic": "8xCX7"}


def _pick(value: str, allowed: tuple[str, ...], what: str) -> str:
    if value and value not in allowed:
        raise InputError(f"{what} {value[:40]!r}: write one of {', '.join(allowed)}")
    return value


class _Assembly:
    """Adds the devices in the order of the packages, and the links between them."""

    def __init__(self, asked: NewMachine) -> None:
        self.asked = asked
        self.build = TopologyBuilder("machine new")
        cpus = parts_in(asked.cpus, "cpu", "--cpus")
        gpus = parts_in(asked.gpus, "gpu", "--gpus") if asked.gpus else []
        if len(cpus) != 1 or len(gpus) > 1:
            raise InputError("--cpus and --gpus: one type of part each")
        self.cpus, self.gpus = cpus[0], gpus[0] if gpus else None
        self.nics = parts_in(asked.nics, "nic", "--nics") if asked.nics else []
        if self.cpus.count > 2 or (self.cpus.count == 2 and "socket_links" not in self.cpus.part.figures):
            most = 2 if "socket_links" in self.cpus.part.figures else 1
            raise InputError(f"--cpus: at most {most} of {self.cpus.part.name} in a machine, not {self.cpus.count}")
        self.generation = self._generation()
        self.nvlinks = self._nvlinks()
        self.switches = self._switches()
        self.roots = max(self.switches, self.cpus.count) if asked.roots is None else asked.roots
        if not self.cpus.count <= self.roots <= MOST_OF_A_KIND:
            raise InputError(f"--roots: from {self.cpus.count}, one a CPU, to {MOST_OF_A_KIND}, not {self.roots}")
        self.nics_at = _pick(asked.nics_at, NICS_AT, "--nics-at") if self.switches else "root"

    def finish(self) -> _core.Topology:
        self._packages()
        self._networks()
        if self.nvlinks == "nvswitch" and self.gpus:
            figures = self.gpus.part.figures
            facts = {"switches": str(figures["nvswitches"])}
            if figures.get("nvswitch_reduces"):
                facts["reduces"] = "yes"
            self.build.add("nvswitch", "NVSwitch", attributes=facts)
        for root in range(self.roots):
            self._root(root)
        self._direct_nvlinks()
        self._notes()
        parts = " + ".join(f"{one.count} x {one.part.name}" for one in self._all())
        name = self.asked.name or "-".join(f"{one.count}x{one.part.short}" for one in self._all()[:1]).replace(" ", "-")
        return self.build.finish(name, "synthetic", f"waywiser machine new: {parts}, figures from data sheets")

    def _all(self) -> list[Parts]:
        return [*([self.gpus] if self.gpus else []), self.cpus, *self.nics]

    # ---- what is asked for ----
    def _generation(self) -> int:
        cpu = self.cpus.part
        most = int(cpu.figures["pcie"])
        generation = int((_pick(self.asked.pcie, PCIE, "--pcie") or f"gen{most}")[3:])
        if generation > most:
            raise InputError(f"--pcie gen{generation}: {cpu.name} has PCIe {most} ({cpu.source_of('pcie')})")
        return generation

    def _nvlinks(self) -> str:
        kind = _pick(self.asked.nvlinks, NVLINKS, "--nvlinks")
        if not self.gpus:
            if kind not in ("", "none"):
                raise InputError(f"--nvlinks {kind}: a machine without --gpus has none")
            return "none"
        gpu, count = self.gpus.part, self.gpus.count
        links = int(gpu.figures.get("nvlinks", 0))
        if kind in ("", "none") and (not links or count == 1):
            return "none"
        if kind not in ("", "none") and not links:
            raise InputError(f"--nvlinks {kind}: {gpu.name} has no NVLinks ({gpu.source})")
        if kind == "nvswitch" and "nvswitches" not in gpu.figures:
            raise InputError(f"--nvlinks nvswitch: no machine with NVSwitches is known for {gpu.name}")
        if kind == "cube-mesh" and (count, links) != (8, 6):
            raise InputError(f"--nvlinks cube-mesh: is of 8 GPUs with 6 NVLinks each, not {count} with {links}")
        if kind in ("", "all"):
            if count == 1 or links % (count - 1):
                each = f"the {links} NVLinks of {gpu.name} are not the same number for each of {count - 1} other GPUs"
                raise InputError(f"--nvlinks: {each}; write --nvswitch or --nvlinks {'|'.join(NVLINKS[2:])}")
            return "all"
        return kind

    def _switches(self) -> int:
        if self.asked.switches is None:
            return -(-self.gpus.count // 2) if self.gpus and self.nvlinks == "nvswitch" else 0
        if not 0 <= self.asked.switches <= MOST_OF_A_KIND:
            raise InputError(f"--switches: from 0 to {MOST_OF_A_KIND}, not {self.asked.switches}")
        return self.asked.switches

    # ---- devices and links ----
    def _packages(self) -> None:
        part, count = self.cpus.part, self.cpus.count
        figures = part.figures
        cores, threads = int(figures["cores"]), int(figures["threads"])
        for package in range(count):
            own = list(range(package * cores, (package + 1) * cores))
            numbers = cpulist([one + thread * cores * count for thread in range(threads) for one in own])
            caches = {name: str(figures[name]) for name in ("l1_data_bytes", "l2_bytes")}
            self.build.add("cpu", part.name, numa=-1, cores=numbers, attributes=caches)
            self.build.add(
                "host", f"NUMA node {package}", numa=package, cores=numbers, attributes={"core_numbers": cpulist(own)}
            )
            words = (
                f"{figures['memory_channels']} channels of {figures['memory']} (data sheet); reads and writes share it"
            )
            rate = float(figures["memory_rate"])
            self.build.link(
                f"host{package}", f"cpu{package}", "memory",
                f"{words}; achievable: {MEMORY_SHARE} assumed, as usual for STREAM",
                nominal=rate, achievable=rate * MEMORY_SHARE,
            )  # fmt: skip
        if count == 2:
            links, rate = int(figures["socket_links"]), float(figures["socket_link_rate"])
            words = f"{links} {figures['socket_link']}, {rate / 1e9:g} GB/s each ({part.source_of('socket_link_rate')})"
            self.build.link(
                "cpu0", "cpu1", "socket", f"{words}; achievable: {SOCKET_SHARE} assumed",
                count=links, nominal=links * rate, achievable=links * rate * SOCKET_SHARE,
            )  # fmt: skip

    def _network_of(self, nics: Parts) -> str:
        kind = str(nics.part.figures["network"])
        letters = _GENERATION_NAMES.get(nics.gigabits, "") if kind == "InfiniBand" else ""
        return f"{kind} {letters}".rstrip()

    def _networks(self) -> None:
        names = dict.fromkeys(map(self._network_of, self.nics))
        self.networks = {name: self.build.add("network", name) for name in names}

    def _root(self, number: int) -> None:
        """A root complex, and what hangs on it."""
        package = number * self.cpus.count // self.roots
        root = self.build.add("root", "root complex", numa=package)
        self.build.link(f"cpu{package}", root, "internal", "inside the package; no limit is known")
        switches = [one for one in range(self.switches) if one * self.roots // self.switches == number]
        for one in switches:
            switch = self.build.add("switch", "PCIe switch", numa=package)
            self._pcie(root, switch)
            self._gpus_at(switch, one, self.switches, package)
            if self.nics_at == "switch":
                self._nics_at(switch, one, self.switches, package)
        if not self.switches:
            self._gpus_at(root, number, self.roots, package)
        if self.nics_at == "root":
            self._nics_at(root, number, self.roots, package)

    def _gpus_at(self, above: str, place: int, places: int, package: int) -> None:
        if not self.gpus:
            return
        figures = self.gpus.part.figures
        links = int(figures.get("nvlinks", 0))
        for _ in range(_share(self.gpus.count, place, places)):
            facts = {"memory_bandwidth": str(figures["memory_bandwidth"])}
            if links and self.nvlinks != "none":
                facts["nvlinks"] = str(links)
            if not self.asked.gdr:
                facts["gpudirect_rdma"] = "no"
            gpu = self.build.add(
                "gpu", self.gpus.part.name, numa=package, memory_bytes=int(figures["memory_bytes"]), attributes=facts
            )
            self._pcie(above, gpu, int(figures["pcie"]))
            if self.nvlinks == "nvswitch":
                self._nvlink(gpu, "nvswitch0", links)

    def _nics_at(self, above: str, place: int, places: int, package: int) -> None:
        for nics in self.nics:
            figures = nics.part.figures
            for _ in range(_share(nics.count, place, places)):
                taken = sum(one["name"].startswith(figures["device"]) for one in self.build.devices)
                nic = self.build.add("nic", f"{figures['device']}{taken}", numa=package)
                self._pcie(above, nic, int(figures["pcie"]), int(figures["width"]))
                rate = nics.gigabits * 1e9 / 8
                words = f"{nics.gigabits:g} Gb/s port of a {nics.part.name} ({nics.part.source})"
                self.build.link(
                    nic, self.networks[self._network_of(nics)], "network",
                    f"{words}; achievable: {PORT_SHARE} after headers of 4 KB packets, not measured",
                    nominal=rate, achievable=rate * PORT_SHARE,
                )  # fmt: skip

    def _pcie(self, above: str, below: str, most: int = 99, width: int = 16) -> None:
        generation = min(self.generation, most)
        self.build.link(
            above, below, "pcie", "", generation=generation, max_generation=generation, width=width, max_width=width
        )

    def _nvlink(self, a: str, b: str, count: int) -> None:
        generation = int(self.gpus.part.figures["nvlink"]) if self.gpus else 0
        self.build.link(a, b, "nvlink", "", generation=generation, max_generation=generation, count=count)

    def _direct_nvlinks(self) -> None:
        if not self.gpus or self.nvlinks not in ("all", "cube-mesh"):
            return
        count = self.gpus.count
        each = int(self.gpus.part.figures["nvlinks"]) // max(1, count - 1)
        pairs = {(a, b): each for a in range(count) for b in range(a + 1, count)}
        for (a, b), links in (_CUBE_MESH if self.nvlinks == "cube-mesh" else pairs).items():
            self._nvlink(f"gpu{a}", f"gpu{b}", links)

    # ---- what was assumed ----
    def _notes(self) -> None:
        notes = self.build.notes
        for one in self._all():
            notes.append(f"{one.asked} is {one.part.name}: {one.part.source}.")
        if self.switches and self.asked.switches is None:
            notes.append("A PCIe switch for each two GPUs is assumed, as in DGX A100; --switches says another number.")
        if self.asked.roots is None:
            notes.append("A root complex for each PCIe switch, at least one a CPU, is assumed; --roots says how many.")
        notes.append("Devices of a type are shared out over switches, root complexes and packages in equal parts.")
        if self.gpus and self.nvlinks == "all":
            notes.append("The NVLinks of each GPU are shared out over all others.")
        notes.append("One NUMA node per package is assumed; memory sizes of the hosts are left out.")


def _share(count: int, place: int, places: int) -> int:
    """How many of `count` things, shared out in order over so many places, are at this one."""
    return sum(one * places // count == place for one in range(count))
