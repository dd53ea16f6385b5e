"""Runs commands inside a guest. Requests and answers are lines of JSON on the machine's serial port.

{"id", "argv", "environment", "seconds"} starts a command, {"id", "input"} is a line of its input. {"id", "line"} is a
line of its output, {"id", "code", "errors"} its end; code is null if it was killed after its time. If the host closes
the port, this program ends, and the guest with it.
"""

import json
import os
import subprocess
import tempfile
import threading

PORT = "/dev/vport0p1"
LONGEST_ERRORS = 20_000


class Agent:
    def __init__(self, port):
        self.requests = os.fdopen(port, "rb", buffering=0)
        self.answers = os.fdopen(os.dup(port), "wb")
        self.lock = threading.Lock()
        self.processes = {}

    def say(self, **answer):
        with self.lock:
            self.answers.write(json.dumps(answer).encode() + b"\n")
            self.answers.flush()

    def serve(self):
        self.say(ready=True)
        for line in self.requests:
            request = json.loads(line)
            if "input" in request:
                self.pass_on(request)
            else:
                threading.Thread(target=self.run, args=(request,), daemon=True).start()

    def pass_on(self, request):
        try:
            stdin = self.processes[request["id"]].stdin
            stdin.write(request["input"] + "\n")
            stdin.flush()
        except (KeyError, OSError):
            pass  # it has ended; its answer says so

    def run(self, request):
        number, code = request["id"], None
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            try:
                code = self.follow(number, request, errors)
            except OSError as error:
                errors.write(f"cannot start {request['argv'][0]}: {error}\n")
                code = 127
            errors.seek(0)
            self.say(id=number, code=code, errors=errors.read()[-LONGEST_ERRORS:])

    def follow(self, number, request, errors):
        """The exit code; None if its time was over."""
        process = subprocess.Popen(
            request["argv"],
            env=os.environ | request["environment"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.processes[number] = process
        alarm = threading.Timer(request["seconds"], os.killpg, (process.pid, 9))
        alarm.start()
        for line in process.stdout:
            self.say(id=number, line=line.rstrip("\n"))
        code = process.wait()
        late = not alarm.is_alive()
        alarm.cancel()
        return None if late else code


os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Agent(os.open(PORT, os.O_RDWR)).serve()
