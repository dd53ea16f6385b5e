"""Starts a virtual machine, runs commands in it and ends it. Every wait has a deadline."""

import json
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from provision.messages import SetupError

AGENT = Path(__file__).parent / "guest" / "agent.py"
MEMORY = "1G"
COMMAND_LINE = (
    "console=ttyS0 quiet loglevel=3 panic=-1 nokaslr mitigations=off tsc=reliable cryptomgr.notests no_timer_check"
)


class GuestError(Exception):
    """A guest that died, or did not answer in time."""


class Command:
    """One command in a guest, running or ended."""

    def __init__(self, guest, number, text, deadline):
        self.guest = guest
        self.number = number
        self.text = text
        self.deadline = deadline
        self.answers = queue.Queue()
        self.lines = []
        self.code = None
        self.errors = ""

    def _next(self):
        """Takes one answer; returns False after the last one."""
        try:
            answer = self.answers.get(timeout=max(0.1, self.deadline - time.monotonic()))
        except queue.Empty:
            raise GuestError(f"{self.guest.name}: no answer to: {self.text}") from None
        if "lost" in answer:
            raise GuestError(answer["lost"])
        if "line" in answer:
            self.lines.append(answer["line"])
            return True
        self.code, self.errors = answer["code"], answer["errors"]
        return False

    def tell(self, line):
        """Sends a line to the command's standard input."""
        self.guest.ask(id=self.number, input=line)

    def wait_for_line(self, beginning):
        """The next line with this beginning; skips lines before it."""
        while self._next():
            if self.lines[-1].startswith(beginning):
                return self.lines[-1]
        last = "; ".join(self.lines[-3:])
        raise GuestError(
            f"{self.guest.name}: {self.text} ended with {self.code}, without '{beginning}': {last}; {self.errors}"
        )

    def wait(self):
        while self._next():
            pass
        return self


class Guest:
    """`accelerator`: QEMU's name, kvm or tcg,thread=multi. Sockets and the console's log are in `folder`."""

    def __init__(self, number, folder, boot, accelerator, link_arguments):
        self.name = f"guest {number}"
        self.number = number
        self.folder = Path(folder)
        self.commands = {}
        self.ready = Command(self, None, "start", 0)
        self.commands[None] = self.ready
        with self._listen("agent") as agent, self._listen("monitor") as monitor:
            self.qemu = subprocess.Popen(
                self._arguments(boot, accelerator, link_arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / f"qemu{number}").open("w"),
            )
            try:
                self.agent, self.monitor = self._accept(agent), self._accept(monitor)
            except GuestError:
                self.close()
                raise
        threading.Thread(target=self._listen_to_agent, daemon=True).start()

    def _path(self, what):
        return str(self.folder / f"{what}{self.number}")

    def _listen(self, what):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path(what))
        listener.listen(1)
        listener.settimeout(0.2)
        return listener

    def _accept(self, listener):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.qemu.poll() is None:
            try:
                return listener.accept()[0]
            except TimeoutError:
                continue
        raise GuestError(f"{self.name} does not start: {self._last_words()}")

    def _arguments(self, boot, accelerator, link_arguments):
        host_side = [f"-chardev socket,id={what},path={self._path(what)}" for what in ("agent", "monitor")]
        shared = [_read_only("machine", "/"), _read_only("packages", boot.packages)]
        words = f"""-M q35 -accel {accelerator} -cpu max -smp 1 -m {MEMORY} -nodefaults -no-user-config -display none
            -no-reboot -serial file:{self._path("console")} {" ".join(host_side)} -mon chardev=monitor,mode=readline
            -device virtio-serial-pci -device virtserialport,chardev=agent {" ".join(shared)} {link_arguments}"""
        start = [f"NUMBER={self.number}", f'PYTHON="{sys.executable}"', f'AGENT="{AGENT}"']
        files = ["-kernel", str(boot.kernel), "-initrd", str(boot.initial), "-append", " ".join([COMMAND_LINE, *start])]
        return [shutil.which("qemu-system-x86_64"), *words.split(), *files]

    def _last_words(self):
        files = [Path(self._path(what)) for what in ("qemu", "console")]
        lines = [line for file in files if file.exists() for line in file.read_text(errors="replace").splitlines()]
        return "\n".join(line for line in lines[-40:] if line.strip()) or "it says nothing"

    def _listen_to_agent(self):
        try:
            for line in self.agent.makefile("rb"):
                answer = json.loads(line)
                self.commands[answer.get("id")].answers.put(answer)
        except (OSError, ValueError):
            pass
        for command in list(self.commands.values()):
            command.answers.put({"lost": f"{self.name} is gone: {self._last_words()}"})

    def await_ready(self, seconds):
        self.ready.deadline = time.monotonic() + seconds
        try:
            answer = self.ready.answers.get(timeout=seconds)
        except queue.Empty:
            raise GuestError(f"{self.name} is not there after {seconds} s: {self._last_words()}") from None
        if "lost" in answer:
            raise GuestError(answer["lost"])

    def start(self, argv, environment=None, seconds=60):
        """Starts a command; it is killed after `seconds`."""
        argv = [str(word) for word in argv]
        command = Command(self, len(self.commands), " ".join(argv)[:200], time.monotonic() + seconds + 10)
        self.commands[command.number] = command
        self.ask(id=command.number, argv=argv, environment=environment or {}, seconds=seconds)
        return command

    def ask(self, **request):
        try:
            self.agent.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise GuestError(f"{self.name} is gone: {self._last_words()}") from None

    def run(self, argv, environment=None, seconds=60):
        """Runs a command to its end; a code other than 0 is an error."""
        ended = self.start(argv, environment, seconds).wait()
        if ended.code != 0:
            raise GuestError(f"{self.name}: {ended.text} ended with {ended.code}: {ended.errors}")
        return ended

    def pull_cable(self, out):
        """Lets QEMU remove or restore the link's carrier."""
        self.monitor.sendall(f"set_link link {'off' if out else 'on'}\n".encode())

    def close(self):
        self.qemu.kill()
        self.qemu.wait(timeout=20)
        for line in (getattr(self, "agent", None), getattr(self, "monitor", None)):
            if line is not None:
                line.close()


def _read_only(tag, folder):
    if "," in str(folder):
        raise SetupError(f"QEMU does not support the comma in the path {folder}", code=2)
    source = f"-fsdev local,id={tag},path={folder},security_model=none,multidevs=remap,readonly=on"
    return f"{source} -device virtio-9p-pci,fsdev={tag},mount_tag={tag}"
