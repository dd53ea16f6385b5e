"""Names of the `info` elements by which hwloc XML carries what its own format lacks; values are JSON objects."""

LINK = "WaywiserLink"
DEVICE = "WaywiserDevice"
ATTRIBUTES = "WaywiserAttributes"
