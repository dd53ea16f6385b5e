"""A machine in the terminal: the tree of its devices, the matrix of relations, the notes."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from waywiser import _core
from waywiser.report.drawing_text import rate_text, size_text
from waywiser.topology.matrix import affinities, ordered_matrix

_STYLE = {
    "cpu": "bold",
    "host": "blue",
    "gpu": "bold green",
    "nic": "magenta",
    "nvme": "red",
    "switch": "yellow",
    "bridge": "yellow",
    "nvswitch": "bold green",
    "network": "magenta",
}
_WORD_STYLE = {"X": "dim", "PIX": "yellow", "PXB": "yellow", "PHB": "cyan", "NODE": "blue", "SYS": "red"}
_ENDLESS = 100_000  # columns of a table that is not for a terminal
_BELOW = {"root", "switch", "bridge", "gpu", "nic", "nvme", "host"}


def print_topology(topology: _core.Topology, tree: bool = True, matrix: bool = True, notes: bool = False) -> None:
    """Prints these parts to standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_ENDLESS)
    if tree:
        console.print(tree_text(topology))
    if tree and matrix:
        console.print()
    if matrix and topology.matrix()[0]:
        for table in matrix_tables(topology, console.width if console.is_terminal else None):
            console.print(table)
            console.print()
        if names := nic_legend(topology).plain:
            console.print(names, markup=False)
    if notes:
        console.print(notes_text(topology))


def tree_text(topology: _core.Topology) -> Tree:
    """Packages, the devices below them, and the NVLinks of each GPU; rates are nominal, per direction."""
    return _TreePrinter(topology).tree()


class _TreePrinter:
    def __init__(self, topology: _core.Topology) -> None:
        self._topology = topology
        self._devices = {device.id: device for device in topology.devices}
        self._links: dict[str, list[tuple[str, _core.Link]]] = defaultdict(list)
        for link in topology.links:
            self._links[link.a].append((link.b, link))
            self._links[link.b].append((link.a, link))
        self._shown: set[str] = set()

    def tree(self) -> Tree:
        topology = self._topology
        head = Text.assemble((topology.name, "bold"), f"  {topology.kind}, {topology.source}")
        tree = Tree(head, guide_style="dim")
        for kind in ("cpu", "root", "gpu", "nic", "nvme"):
            for id_ in topology.ids(kind):
                if id_ not in self._shown:
                    self._add(tree, id_, None)
        for id_ in topology.ids("nvswitch"):
            count = self._devices[id_].attributes.get("switches", "")
            members = ", ".join(f"{other} ×{link.count}" for other, link in self._links[id_])
            tree.add(
                Text.assemble(
                    (id_, _STYLE["nvswitch"]), f"  {count + ' × ' if count else ''}{self._devices[id_].name}: {members}"
                )
            )
        return tree

    def _add(self, above: Tree, id_: str, link: _core.Link | None) -> None:
        self._shown.add(id_)
        branch = above.add(self._line(self._devices[id_], link))
        order = sorted(self._links[id_], key=lambda item: self._devices[item[0]].kind != "host")
        for other, below in order:
            hangs = below.kind in ("memory", "internal", "pcie", "c2c") or (
                below.kind == "nvlink" and self._devices[id_].kind == "cpu"
            )
            if other not in self._shown and hangs and self._devices[other].kind in _BELOW:
                self._add(branch, other, below)

    def _line(self, device: _core.Device, link: _core.Link | None) -> Text:
        text = Text.assemble((device.id, _STYLE.get(device.kind, "")), f"  {device.name}")
        facts = [device.bus_id, size_text(device.memory_bytes)]
        facts.append(f"CPUs {device.cores}" if device.kind == "host" and device.cores else "")
        text.append("".join(f"  {fact}" for fact in facts if fact))
        if link is not None and link.kind != "internal":
            text.append("  " + _link_words(link), "bold red" if link.trained_down else "dim")
        text.append(self._gpu_links(device, link), "green")
        for other, cable in self._links[device.id]:
            if cable.kind in ("network", "socket"):
                text.append(f"  ↔ {other if cable.kind == 'socket' else self._devices[other].name}", "magenta")
                text.append(f" {rate_text(cable.nominal)}" if cable.nominal else "", "dim")
        return text

    def _gpu_links(self, device: _core.Device, above: _core.Link | None) -> str:
        """A GPU's NVLinks and xGMI links, except the link to its parent."""
        if device.kind != "gpu":
            return ""
        text = ""
        for kind, name in (("nvlink", "NVLink"), ("xgmi", "xGMI")):
            shown_above = above is not None and above.kind == kind
            links = [
                (other, link)
                for other, link in self._links[device.id]
                if link.kind == kind and not (shown_above and self._devices[other].kind == "cpu")
            ]
            each = {rate_text(link.nominal / link.count) for _, link in links if link.nominal}
            words = f"  {name}: " + ", ".join(f"{other} ×{link.count}" for other, link in links)
            text += words + (f" of {each.pop()}" if len(each) == 1 else "") if links else ""
        return text + ("  links to GPUs not known" if device.attributes.get("gpu_links") == "unknown" else "")


def _link_words(link: _core.Link) -> str:
    if link.kind == "pcie":
        words = f"PCIe {link.generation} ×{link.width}" if link.generation and link.width else "PCIe"
        if link.trained_down:
            better = f" of {link.max_generation}" if link.generation < link.max_generation else ""
            lanes = f" of ×{link.max_width}" if link.width < link.max_width else ""
            words = f"PCIe {link.generation}{better} ×{link.width}{lanes}"
    else:
        words = f"{link.count} × {link.kind}" if link.count > 1 else link.kind
    achievable = f" ({rate_text(link.achievable)} achievable)" if link.achievable else ""
    return f"{words} {rate_text(link.nominal)}{achievable}".rstrip()


def matrix_tables(topology: _core.Topology, width: int | None) -> list[Table]:
    """The relations of GPUs and NICs as `nvidia-smi topo -m` shows them: NICs by number, affinities of GPUs at the end.

    Columns that exceed `width` go, whole, into further tables; None: one table, however wide.
    """
    ids, words = ordered_matrix(topology)
    columns = [(id_, [row[j] for row in words]) for j, id_ in enumerate(ids)]
    told = [affinities(topology, id_) if id_.startswith("gpu") else ("", "") for id_ in ids]
    columns += [("CPU affinity", [cpus for cpus, _ in told]), ("NUMA", [numa for _, numa in told])]
    first = max(map(len, ids), default=0)
    parts: list[list[tuple[str, list[str]]]] = [[]]
    used = first
    for head, cells in columns:
        need = 2 + max(map(len, (head, *cells)))
        if width is not None and parts[-1] and used + need > width:
            parts.append([])
            used = first
        parts[-1].append((head, cells))
        used += need
    return [_matrix_part(ids, part) for part in parts]


def _matrix_part(ids: list[str], columns: list[tuple[str, list[str]]]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True, overflow="ignore")
    for head, _ in columns:
        table.add_column(head, justify="left" if " " in head else "center", no_wrap=True, overflow="ignore")
    for i, id_ in enumerate(ids):
        words = (cells[i] for _, cells in columns)
        table.add_row(Text(id_, "bold"), *(Text(word, _style(word)) for word in words))
    return table


def _style(word: str) -> str:
    return "green" if word.startswith(("NV", "XGMI")) else _WORD_STYLE.get(word, "")


def nic_legend(topology: _core.Topology) -> Text:
    """The names of the NICs, in one line; empty without NICs."""
    nics = sorted(topology.ids("nic"), key=lambda id_: int(id_[3:]))
    return Text(", ".join(f"{id_}: {topology.device(id_).name}" for id_ in nics))


def legend(topology: _core.Topology) -> str:
    """What the words in the matrix mean."""
    meanings = {
        "NV": "NV#: that many NVLinks",
        "XGMI": "XGMI#: that many xGMI links",
        "PIX": "PIX: one PCIe switch or bridge",
        "PXB": "PXB: several PCIe switches",
        "PHB": "PHB: through a root complex",
        "NODE": "NODE: two root complexes of one NUMA node",
        "SYS": "SYS: between NUMA nodes",
    }
    present = {word.rstrip("0123456789") for row in topology.matrix()[1] for word in row}
    return "; ".join(text for word, text in meanings.items() if word in present)


def notes_text(topology: _core.Topology) -> Text:
    """The legend of the words in the matrix, software versions, and the assumptions."""
    lines = [legend(topology)]
    lines += [", ".join(f"{name} {version}" for name, version in topology.software.items())]
    lines += [f"note: {note}" for note in topology.notes]
    lines.append(f"fingerprint {topology.fingerprint}")
    return Text("\n".join(line for line in lines if line), "dim")
