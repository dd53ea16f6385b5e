"""Reads and writes the table of `nvidia-smi topo -m`.

The table gives relations only. The reader makes the smallest tree of root complexes and PCIe switches that has these
relations; names, widths and rates stay unknown. If NV# hides the PCIe relation of two GPUs, their relations to NICs and
their affinities decide.
"""

from __future__ import annotations

import re
from itertools import combinations, takewhile

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.builder import TopologyBuilder, cpulist, cpus_of_list, name_of_file

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_COLUMNS = ("CPU", "NUMA", "GPU")  # first words of the columns behind the relations
_AFFINITY = re.compile(r"N/A|\d[\d,-]{0,400}")
_WORD = re.compile(r"X|NV\d{1,3}|XGMI\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC")
_NAME = re.compile(r"[\w.:-]{1,40}", re.ASCII)  # GPU0, NIC0, mlx5_0
_LINKS = ("NV", "XGMI")
_ORDER = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
_MOST = 128
_MOST_NVLINKS = 18  # of one GPU: if it has more in sum to its peers, they share links through switches


def looks_like_matrix(text: str) -> bool:
    """Whether the text begins with the head of such a table."""
    return any(line.split()[:1] == ["GPU0"] for line in _ESCAPES.sub("", text[:4096]).splitlines())


def read_matrix(text: str, what: str) -> _core.Topology:
    """The machine of such a table. Raises InputError or `_core.Error` with one line."""
    names, words, affinities = _table(text, what)
    return _Reader(names, words, affinities, _legend(text), what).topology()


def _table(text: str, what: str) -> tuple[list[str], list[list[str]], list[list[str]]]:
    lines = [line.split() for line in _ESCAPES.sub("", text).splitlines()]
    head = next((i for i, parts in enumerate(lines) if parts[:1] == ["GPU0"]), None)
    if head is None:
        raise InputError(f"{what}: no line that begins with GPU0, as in `nvidia-smi topo -m`")
    names = list(takewhile(lambda part: part not in _COLUMNS, lines[head]))
    if len(names) > _MOST or len(set(names)) != len(names):
        raise InputError(f"{what}: more than {_MOST} devices, or a device twice")
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise InputError(f"{what}: {wrong[0][:40]!r} is no name of a device")
    rows = _rows(names, lines[head + 1 :], what)
    words, affinities = [], []
    for name in names:
        row = rows[name]
        for word in row[: len(names)]:
            if not _WORD.fullmatch(word) or (word.startswith(_LINKS) and not 0 < _links(word) <= _MOST_NVLINKS):
                raise InputError(f"{what}: {word[:20]!r} in the row of {name} is not a relation")
        rest = row[len(names) :]
        for word in rest:
            if len(rest) > len(_COLUMNS) or not _AFFINITY.fullmatch(word):
                raise InputError(f"{what}: {word[:20]!r} in the row of {name} is in no column")
        words.append(row[: len(names)])
        affinities.append(["" if part == "N/A" else part for part in [*rest, "", ""][:2]])
    return names, words, affinities


def _rows(names: list[str], lines: list[list[str]], what: str) -> dict[str, list[str]]:
    """Device -> its row. Only when all are there other text may follow."""
    rows: dict[str, list[str]] = {}
    for name, *row in filter(None, lines):
        if name in names:
            if name in rows or len(row) < len(names):
                raise InputError(f"{what}: the row of {name} is short, or there twice")
            rows[name] = row
        elif row and _WORD.fullmatch(row[0]):
            raise InputError(f"{what}: {name[:40]!r} has a row, but no column")
        elif len(rows) == len(names):
            break
    if missing := [name for name in names if name not in rows]:
        raise InputError(f"{what}: {missing[0][:40]!r} has a column, but no row")
    return rows


def _links(word: str) -> int:
    return int(word.lstrip("NVXGMI"))


def _legend(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\s*(NIC\d+): (\w{1,60})\s*$", text, re.MULTILINE))


class _Reader:
    def __init__(
        self, names: list[str], words: list[list[str]], affinities: list[list[str]], legend: dict[str, str], what: str
    ) -> None:
        self._names, self._words, self._affinities, self._legend = names, words, affinities, legend
        self._build = TopologyBuilder(what)
        self._what = what
        self._ids: list[str] = []
        for i, j in combinations(range(len(names)), 2):
            if words[i][j] != words[j][i]:
                raise InputError(f"{what}: {names[i]} - {names[j]} is {words[i][j]}, the other way {words[j][i]}")
            if words[i][j] == "X":
                raise InputError(f"{what}: {names[i]} and {names[j]} are the same device according to the table")

    def topology(self) -> _core.Topology:
        everyone = list(range(len(self._names)))
        groups = self._nodes(everyone)
        self._cores = _core_numbers([self._affinity_of(group) for group in groups])
        for node, members in zip(self._numbers(groups), groups, strict=True):
            self._add_node(node, members)
        self._add_nvlinks()
        self._build.notes.append("relations only: names, widths and rates are not in such a table")
        name = name_of_file(self._what, "matrix")
        topology = self._build.finish(name, "recorded", "nvidia-smi topo -m")
        self._compare(topology)
        return self._build.finish(name, "recorded", "nvidia-smi topo -m")

    def _classes(self, members: list[int], most: int) -> list[list[int]]:
        """Groups of devices that are connected by relations up to `most`, in the order of the table."""
        groups: list[list[int]] = []
        for i in members:
            near = [g for g in groups if any(_ORDER.get(self._words[i][j], 9) <= most for j in g)]
            groups = [g for g in groups if g not in near] + [sorted([i] + [j for g in near for j in g])]
        return sorted(groups)

    def _nodes(self, members: list[int]) -> list[list[int]]:
        groups = self._classes(members, _ORDER["NODE"])
        by_affinity: dict[str, list[int]] = {}
        for group in groups:
            told = [self._affinities[i] for i in group]
            cores = next((cpus or f"NUMA {node}" for cpus, node in told if cpus or node), f"group {group[0]}")
            by_affinity.setdefault(cores, []).extend(group)
        return sorted(sorted(group) for group in by_affinity.values())

    def _numbers(self, groups: list[list[int]]) -> list[int]:
        """NUMA nodes by the table's numbers, or counted if it has none."""
        told = [{node for i in group if (node := self._affinities[i][1]).isdecimal()} for group in groups]
        numbers = [int(min(names)) if len(names) == 1 and len(min(names)) < 4 else -1 for names in told]
        return numbers if -1 not in numbers and len(set(numbers)) == len(numbers) else list(range(len(groups)))

    def _add_node(self, node: int, members: list[int]) -> None:
        cores = cpulist(self._affinity_of(members))
        numbers = self._cores.get(cores, "")
        attributes = {"core_numbers": numbers} if numbers else {}
        host = self._build.add("host", f"NUMA node {node}", node, numa=node, cores=cores, attributes=attributes)
        cpu = self._build.add("cpu", "CPU", cores=cores)
        self._build.link(host, cpu, "memory", "not in the table")
        for other in [d["id"] for d in self._build.devices if d["kind"] == "cpu" and d["id"] != cpu]:
            self._build.link(other, cpu, "socket", "not in the table")
        roots = self._merge_hidden(self._classes(members, _ORDER["PHB"]))
        for group in roots:
            root = self._build.add("root", "root complex", numa=node)
            self._build.link(cpu, root, "internal", "not in the table")
            self._add_below(root, group, node)

    def _affinity_of(self, members: list[int]) -> list[int]:
        """The CPUs of these devices; none if the table does not say."""
        told = [cpus for i in members if (cpus := self._affinities[i][0])]
        return cpus_of_list(told[0]) if told else []

    def _merge_hidden(self, groups: list[list[int]]) -> list[list[int]]:
        """Joins groups between which only NV# is known, with one root complex, the simplest tree that fits."""
        merged: list[list[int]] = []
        for group in groups:
            for other in merged:
                if all(self._words[i][j].startswith(_LINKS) for i in group for j in other):
                    other.extend(group)
                    break
            else:
                merged.append(list(group))
        return [sorted(group) for group in merged]

    def _add_below(self, root: str, group: list[int], node: int) -> None:
        for tree in self._classes(group, _ORDER["PXB"]):
            switches = self._classes(tree, _ORDER["PIX"])
            parent = root
            if len(switches) > 1:
                parent = self._add_switch(root, node)
            for members in switches:
                above = (
                    self._add_switch(parent, node) if len(tree) > 1 and (parent != root or len(members) > 1) else root
                )
                for i in members:
                    self._add_device(i, above, node)

    def _add_switch(self, parent: str, node: int) -> str:
        switch = self._build.add("switch", "PCIe switch", numa=node)
        self._build.link(parent, switch, "pcie", "not in the table")
        return switch

    def _id(self, i: int) -> str:
        name = self._names[i]
        if name.startswith("GPU"):
            return f"gpu{int(name[3:])}"
        return f"nic{i - sum(other.startswith('GPU') for other in self._names[:i])}"

    def _add_device(self, i: int, parent: str, node: int) -> None:
        id_ = self._id(i)
        kind = id_.rstrip("0123456789")
        name = "GPU" if kind == "gpu" else self._legend.get(self._names[i], self._names[i])
        self._build.add(kind, name, int(id_[3:]), numa=node)
        self._build.link(parent, id_, "pcie", "not in the table")

    def _add_nvlinks(self) -> None:
        pairs = {
            (i, j): _links(self._words[i][j])
            for i, j in combinations(range(len(self._names)), 2)
            if self._words[i][j].startswith(_LINKS)
        }
        counts = [[count for pair, count in pairs.items() if i in pair] for i in range(len(self._names))]
        if max(map(sum, counts), default=0) > _MOST_NVLINKS:
            switch = self._build.add("nvswitch", "NVSwitch")
            for i, mine in enumerate(counts):
                if mine:
                    self._build.link(self._id(i), switch, "nvlink", "not in the table", count=max(mine))
            return
        for (i, j), count in pairs.items():
            kind = "nvlink" if self._words[i][j].startswith("NV") else "xgmi"
            self._build.link(self._id(i), self._id(j), kind, "not in the table", count=count)

    def _compare(self, topology: _core.Topology) -> None:
        for i, j in combinations(range(len(self._names)), 2):
            found, wanted = topology.relation(self._id(i), self._id(j)), self._words[i][j].replace("SOC", "SYS")
            if found != wanted:
                pair = f"{self._names[i]} - {self._names[j]}"
                self._build.notes.append(f"{pair}: the table says {wanted}, but no tree has that; {found} is used")


def _core_numbers(nodes: list[list[int]]) -> dict[str, str]:
    """CPU list of each NUMA node -> its cores without hyperthreads, as Slurm counts them.

    Linux numbers the second thread of every core after the first ones of all cores: "0-63,128-191" are cores 0 to 63 of
    128. Empty if the lists do not have this form, so that each CPU counts as a core.
    """
    total = sum(map(len, nodes))
    cores = [[cpu for cpu in cpus if cpu < total // 2] for cpus in nodes]
    second = [sorted(cpu + total // 2 for cpu in mine) for mine in cores]
    paired = total > 0 and all(
        mine and sorted(cpus) == sorted([*mine, *theirs])
        for cpus, mine, theirs in zip(nodes, cores, second, strict=True)
    )
    halves = {cpulist(cpus): cpulist(mine) for cpus, mine in zip(nodes, cores, strict=True)}
    return halves if paired and all("," in cpus for cpus in halves) else {}


def write_matrix(topology: _core.Topology) -> str:
    """The table of `nvidia-smi topo -m` for GPUs and NICs, with affinities and the names of NICs."""
    ids, words = ordered_matrix(topology)
    nics = [id_ for id_ in ids if id_.startswith("nic")]
    heads = [id_.upper() for id_ in ids]
    lines = ["\t".join(["", *heads, "CPU Affinity", "NUMA Affinity"])]
    for id_, head, row in zip(ids, heads, words, strict=True):
        lines.append("\t".join([head, *row, *(affinities(topology, id_) if id_ not in nics else ())]))
    if nics:
        lines += ["", "NIC Legend:", ""] + [f"  {id_.upper()}: {topology.device(id_).name}" for id_ in nics]
    return "\n".join(lines) + "\n"


def ordered_matrix(topology: _core.Topology) -> tuple[list[str], list[list[str]]]:
    """The ids and relations of GPUs, then NICs, each by number."""
    ids, words = topology.matrix()
    order = sorted(range(len(ids)), key=lambda i: (not ids[i].startswith("gpu"), int(ids[i][3:])))
    return [ids[i] for i in order], [[words[i][j] for j in order] for i in order]


def affinities(topology: _core.Topology, id_: str) -> tuple[str, str]:
    """The CPUs and the NUMA node of a device; "N/A" if unknown."""
    device = topology.device(id_)
    return device.cores or _cores(topology, device.numa) or "N/A", str(device.numa) if device.numa >= 0 else "N/A"


def _cores(topology: _core.Topology, numa: int) -> str:
    hosts = [device for device in topology.devices if device.kind == "host" and device.numa == numa]
    return hosts[0].cores if hosts else ""
