"""What a GPU says about errors of its memory, repairs that wait for a reset, and limits of its power."""

from __future__ import annotations

from waywiser.look import nvidia
from waywiser.look.nvidia import Section

_REPAIRS = {
    ("Remapped Rows", "Pending"): "a row remap waits for a reset",
    ("Remapped Rows", "Remapping Failure Occurred"): "a row could not be remapped: the GPU is to be replaced",
    ("Retired Pages", "Pending Page Blacklist"): "a page retirement waits for a reset",
    ("Retired Pages", "Pending"): "a page retirement waits for a reset",
    ("ECC Errors", "Channel Repair Pending"): "a repair of a memory channel waits for a reset",
    ("ECC Errors", "TPC Repair Pending"): "a repair of a TPC waits for a reset",
    ("ECC Errors", "Unrepairable Memory"): "memory cannot be repaired: the GPU is to be replaced",
    ("ECC Errors", "Aggregate", "SRAM Threshold Exceeded"): "too many errors of the SRAM: the GPU is to be replaced",
}
_UNCORRECTED = (
    ("DRAM Uncorrectable",),
    ("SRAM Uncorrectable",),
    ("SRAM Uncorrectable Parity",),
    ("SRAM Uncorrectable SEC-DED",),
    ("Double Bit", "Total"),  # up to Volta
)


def memory_problems(gpus: dict[str, Section]) -> list[str]:
    """A line for each GPU that has lost data, or waits for a reset or for its replacement."""
    found = []
    for bus, gpu in gpus.items():
        found += [f"{bus}: {text}" for keys, text in _REPAIRS.items() if nvidia.value(gpu, *keys) == "Yes"]
        lost = [names for names in _UNCORRECTED if nvidia.is_above(gpu, "ECC Errors", "Volatile", *names)]
        found += [f"{bus}: {' '.join(names)} {nvidia.value(gpu, 'ECC Errors', 'Volatile', *names)}" for names in lost]
        action = nvidia.value(gpu, "GPU Recovery Action")
        if action not in ("", "None", "N/A"):
            found.append(f"{bus}: the driver asks for {action!r}")
    return found


def held_back(gpus: dict[str, Section]) -> list[str]:
    """A line for each GPU with less power than its default, ECC that changes, or a driver that unloads its state."""
    found = []
    for bus, gpu in gpus.items():
        for section in ("GPU Power Readings", "Power Readings"):
            limits = [nvidia.value(gpu, section, name) for name in ("Current Power Limit", "Power Limit")]
            limit = next((watts for one in limits if (watts := nvidia.watts(one)) is not None), None)
            default = nvidia.watts(nvidia.value(gpu, section, "Default Power Limit"))
            if limit is not None and default is not None and limit < default:
                found.append(f"{bus}: {limit:g} of {default:g} W")
        current, pending = (nvidia.value(gpu, "ECC Mode", word) for word in ("Current", "Pending"))
        if {current, pending} == {"Enabled", "Disabled"}:
            found.append(f"{bus}: ECC will be {pending.lower()} after a reset")
        if nvidia.value(gpu, "Persistence Mode") == "Disabled":
            found.append(f"{bus}: persistence mode is off, so the first use waits for the GPU's start")
    return found
