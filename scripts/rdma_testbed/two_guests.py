"""Two guests joined by a link, each with one Soft-RoCE device on it."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from provision.messages import SetupError, say

from .guest import Guest, GuestError

DEVICE = "rxe0"
SECONDS_TO_START = {"kvm": 30, "tcg,thread=multi": 180}
CARD = "-device virtio-net-pci,netdev=link,host_mtu=4200,mac=52:54:00:00:00:0{number}"
LINE = "-netdev stream,id=link,server={server},addr.type=unix,addr.path={path}"
DROP_RDMA = (
    "qdisc add dev eth0 root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    "qdisc add dev eth0 parent 1:3 handle 3: netem loss 100%",
    "filter add dev eth0 parent 1: protocol ipv6 u32 match ip6 protocol 17 0xff flowid 1:3",
)
# UCX uses the GID of the IPv6 address only after duplicate address detection is complete.
LINK_UP = f"""
set -e
ip link set eth0 up mtu 4200
ip address add 10.98.7.$NUMBER/24 dev eth0
rdma link add {DEVICE} type rxe netdev eth0
tries=300
while ip -6 address show dev eth0 | grep -q tentative || ! ip -6 address show dev eth0 | grep -q inet6; do
  tries=$((tries - 1)); test $tries -gt 0 || {{ echo "no IPv6 address on eth0" >&2; exit 1; }}; sleep 0.1
done
"""


def accelerators():
    """The accelerators that QEMU can use here, the fastest first."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    virtualizes = " vmx" in flags or " svm" in flags
    usable = virtualizes and os.access("/dev/kvm", os.R_OK | os.W_OK)
    return ["kvm", "tcg,thread=multi"] if usable else ["tcg,thread=multi"]


class TwoGuests:
    def __init__(self, boot):
        self.folder = tempfile.TemporaryDirectory(prefix="waywiser-rdma-")
        self.guests = []
        started = time.monotonic()
        self.accelerator = self._start_with_any(boot)
        for guest in self.guests:
            guest.run(["/bin/sh", "-c", LINK_UP], {"NUMBER": str(guest.number)})
        say(f"two guests with {self.accelerator.partition(',')[0]} after {time.monotonic() - started:.1f} s")

    def _start_with_any(self, boot):
        possible = accelerators()
        for accelerator in possible:
            try:
                self._start(boot, accelerator)
                return accelerator
            except GuestError as error:
                self._end_guests()
                if accelerator == possible[-1]:
                    raise SetupError(f"the guests do not start: {error}") from None
                say(f"{accelerator} does not work here, continuing without: {str(error).splitlines()[0]}")
        raise AssertionError("unreachable")

    def _start(self, boot, accelerator):
        folder = Path(tempfile.mkdtemp(dir=self.folder.name))
        wire = folder / "wire"
        for number, server in ((1, "on"), (2, "off")):
            line = LINE.format(server=server, path=wire)
            self.guests.append(Guest(number, folder, boot, accelerator, f"{CARD.format(number=number)} {line}"))
        for guest in self.guests:
            guest.await_ready(SECONDS_TO_START[accelerator])

    def _end_guests(self):
        for guest in self.guests:
            guest.close()
        self.guests = []

    def shape(self, *netem):
        """Sets loss, delay or nothing on both ends of the link, in the words of tc netem."""
        for guest in self.guests:
            with suppress(GuestError):  # nothing to delete
                guest.run(["tc", "qdisc", "delete", "dev", "eth0", "root"])
            if netem:
                guest.run(["tc", "qdisc", "add", "dev", "eth0", "root", "netem", *netem, "limit", "10000"])

    def drop_rdma(self):
        """Drops packets over UDP and IPv6, which Soft-RoCE sends; TCP is not affected."""
        for guest in self.guests:
            for words in DROP_RDMA:
                guest.run(["tc", *words.split()])

    def pull_cable(self, out=True):
        self.guests[0].pull_cable(out)

    def close(self):
        self._end_guests()
        self.folder.cleanup()
