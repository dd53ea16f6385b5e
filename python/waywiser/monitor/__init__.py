"""Byte and error counters of NICs, NVLinks and PCIe links, as metrics and on the terminal."""
