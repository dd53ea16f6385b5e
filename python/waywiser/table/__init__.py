"""Tables across ranks: rows to the ranks that own them, joins, sums by key, order."""

from waywiser.table.column_shuffle import ColumnShuffle
from waywiser.table.columns import Columns
from waywiser.table.device_rows import DeviceRows, DeviceShuffle
from waywiser.table.frames import Frame
from waywiser.table.grouping import Aggregate, group_by
from waywiser.table.merge import How, merge
from waywiser.table.outcome import ShuffleOutcome
from waywiser.table.parts import partition, shuffle
from waywiser.table.paths import PathOutcome, WayCounts
from waywiser.table.shuffle import PeerCounts, Shuffle, ShuffleCounts
from waywiser.table.sorting import Order, sort

__all__ = [
    "Aggregate",
    "ColumnShuffle",
    "Columns",
    "DeviceRows",
    "DeviceShuffle",
    "Frame",
    "How",
    "Order",
    "PathOutcome",
    "PeerCounts",
    "Shuffle",
    "ShuffleCounts",
    "ShuffleOutcome",
    "WayCounts",
    "group_by",
    "merge",
    "partition",
    "shuffle",
    "sort",
]
