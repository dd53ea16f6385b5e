"""Settings of other libraries with the measurements that justify them, and omitted settings with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from waywiser.json_fields import Node

SCHEMA = "waywiser.settings"
VERSION = 1
NAME = re.compile(r"(?:UCX|UCC|OMPI_MCA|MPIR_CVAR|NCCL)_[A-Za-z0-9_]{1,120}|WAYWISER_NCCL_PLAN")
TARGETS = ("ucx", "openmpi", "mpich", "nccl")
MEASURED, SIMULATED = "measured", "simulated"
NOT_CHECKED = "not checked: another machine"


@dataclass(frozen=True)
class Setting:
    """A variable that the library reads from the environment. Settings of one `group` only make sense together.

    `measured` is False if the figure comes from a data sheet or a simulation; `proof` is the result of `verify`.
    """

    target: str
    name: str
    value: str
    default: str
    why: str
    group: str
    measured: bool = True
    proof: str = ""


@dataclass(frozen=True)
class LeftOut:
    """An omitted setting and the reason; `refuted`: it was tried and did not win."""

    target: str
    name: str
    value: str
    why: str
    refuted: bool = False


@dataclass(frozen=True)
class Settings:
    """The settings for machines with one fingerprint. `versions`: the versions that the names were checked against."""

    fingerprint: str
    machine: str
    label: str = ""  # empty for a measured profile
    versions: dict[str, str] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    product: str = ""  # DMI product name, by which UCX chooses a section of ucx.conf
    proved: bool = False  # whether `verify` has dropped the settings that do not win
    libraries: dict[str, str] = field(
        default_factory=dict
    )  # real path of each library that the names were checked with

    @property
    def source(self) -> str:
        """The source of the settings: measurements, or a simulation or data sheets ("simulated")."""
        return SIMULATED if self.label else MEASURED

    def environment(self, targets: tuple[str, ...] = TARGETS) -> dict[str, str]:
        """Variables to set for the given libraries."""
        return {one.name: one.value for one in self.settings if one.target in targets}

    def only_proved(self) -> Settings:
        """Without the settings that `verify` has not proved."""
        return replace(self, settings=tuple(one for one in self.settings if one.proof), proved=True)

    def with_others_of(self, before: Settings, targets: Collection[str]) -> Settings:
        """With what `before` says about the libraries that are not in `targets`."""
        kept = tuple(one for one in before.settings if one.target not in targets)
        left = tuple(one for one in before.left_out if one.target not in targets)
        versions = {name: text for name, text in before.versions.items() if name not in targets}
        libraries = {name: file for name, file in before.libraries.items() if name not in targets}
        settings = self.settings + kept
        return replace(
            self,
            versions=self.versions | versions,
            settings=settings,
            left_out=self.left_out + left,
            proved=before.proved and all(one.proof for one in settings),
            libraries=self.libraries | libraries,
        )

    def checked_with(self, lead: str, targets: Collection[str] = TARGETS) -> list[str]:
        """The version of each library that the names were checked against, after `lead`; then those that were not."""
        told = [
            f"{lead}{name} {text}" for name, text in self.versions.items() if name in targets and text != NOT_CHECKED
        ]
        rest = [name for name, text in self.versions.items() if name in targets and text == NOT_CHECKED]
        return told + ([f"names of {', '.join(rest)} {NOT_CHECKED}"] if rest else [])

    def to_json(self) -> str:
        """A JSON document."""
        value = {
            "schema": SCHEMA,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "machine": self.machine,
            "source": self.source,
            "label": self.label,
            "versions": self.versions,
            "product": self.product,
            "proved": self.proved,
            "libraries": self.libraries,
            "settings": [vars(one) for one in self.settings],
            "left_out": [vars(one) for one in self.left_out],
        }
        return json.dumps(value, indent=1)


def _variable(node: Node) -> Setting:
    name, value = node.text("name"), node.text("value")
    if not NAME.fullmatch(name):  # only these may enter the environment of a program; never LD_PRELOAD
        raise node.child("name").refuse("must be a variable of UCX, UCC, Open MPI, MPICH or NCCL")
    return Setting(
        node.word("target", TARGETS),
        name,
        value,
        node.text("default", ""),
        node.text("why", ""),
        node.text("group", ""),
        node.flag("measured"),
        node.text("proof", ""),
    )


def _texts(node: Node, key: str) -> dict[str, str]:
    value = node.child(key).value if node.has(key) else {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise node.child(key).refuse("must be texts")
    return value


def read_settings(value: Any, what: str) -> Settings:
    """Settings from their JSON; InputError names the first wrong field."""
    node = Node(value, what)
    label = node.text("label", "")
    if node.has("source") and node.word("source", (MEASURED, SIMULATED)) == SIMULATED:
        label = label or SIMULATED
    return Settings(
        node.text("fingerprint"),
        node.text("machine"),
        label,
        _texts(node, "versions"),
        tuple(_variable(one) for one in node.items("settings")),
        tuple(
            LeftOut(one.text("target"), one.text("name"), one.text("value"), one.text("why"), one.flag("refuted"))
            for one in node.items("left_out")
        ),
        node.text("product", ""),
        node.flag("proved"),
        _texts(node, "libraries"),
    )
