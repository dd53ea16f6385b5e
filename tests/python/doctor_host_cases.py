"""Machines for the checks of the host: limits, moving pages, clocks of CPUs and GPUs, links that sleep."""

from __future__ import annotations

from doctor_machines import BRIDGE0, GPU0, Files, config, gpu, nic, numa, smi
from doctor_parts import ABSENT, HOST, OK, PROBLEM, UNKNOWN, WARNING, Case
from doctor_software_cases import TORCHRUN

LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\nMax open files            {} {} files\n"
)
BIG_JOB = {**TORCHRUN, "WORLD_SIZE": "1024"}


def files(soft: str) -> Files:
    return {"/proc/self/limits": LIMITS.format(soft, "1048576")}


def clocks(
    governor: str, driver: str = "acpi-cpufreq", cpus: int = 4, limit: str = "3600000", preference: str = ""
) -> Files:
    told = {"scaling_governor": governor, "scaling_driver": driver, "scaling_max_freq": limit}
    told |= {"cpuinfo_max_freq": "3600000", "energy_performance_preference": preference}
    place = "/sys/devices/system/cpu/cpu{}/cpufreq/{}"
    return {place.format(cpu, name): f"{value}\n" for cpu in range(cpus) for name, value in told.items()}


def second(group: str, limit: str, used: int, cache: int = 0, killed: int = 0) -> Files:
    """A control group of version 2, below a slice without a limit."""
    place = f"/sys/fs/cgroup/slurm/{group}"
    return {
        "/proc/self/cgroup": f"0::/slurm/{group}\n",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "/sys/fs/cgroup/slurm/memory.max": "max\n",
        f"{place}/memory.max": f"{limit}\n",
        f"{place}/memory.current": f"{used}\n",
        f"{place}/memory.stat": f"anon 4096\ninactive_file {cache}\n",
        f"{place}/memory.events": f"low 0\noom 0\noom_kill {killed}\n",
    }


def first(limit: int, used: int, path: str = "/docker/1f", killed: int = 0) -> Files:
    """A container with version 1: its group stands at the root, whatever the path says."""
    place = "/sys/fs/cgroup/memory"
    return {
        "/proc/self/cgroup": f"9:cpu:/\n4:memory:{path}\n0::/\n",
        f"{place}/memory.limit_in_bytes": f"{limit}\n",
        f"{place}/memory.usage_in_bytes": f"{used}\n",
        f"{place}/memory.stat": "cache 0\ntotal_inactive_file 0\n",
        f"{place}/memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {killed}\n",
    }


MLX5 = "[    9.2] mlx5_core 0000:18:00.0: "
POWER = f"{MLX5}mlx5_pcie_event:299:(pid 9): Detected insufficient power on the PCIe slot (27W).\n"
NARROW = f"{MLX5}63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:16:00.0\n"
MODULE = f"{MLX5}Port module event[error]: module 0, Cable error, Bad or shorted cable/module\n"
ENOUGH = f"{MLX5}mlx5_pcie_event:304:(pid 9): PCIe slot advertised sufficient power (75W).\n"
GB = 1 << 30
NO_LIMIT = 9223372036854771712
APPLICATIONS = {"Applications_Clocks__Graphics": "1095 MHz", "Default_Applications_Clocks__Graphics": "1980 MHz"}
LOCKED = {
    "Performance_State": "P0", "Clocks__SM": "600 MHz", "Max_Clocks__SM": "1980 MHz",
    "Clocks_Event_Reasons__Idle": "Not Active", "Clocks_Event_Reasons__SW_Power_Cap": "Not Active",
}  # fmt: skip
SLEEPY = f"{HOST}/{BRIDGE0}/{GPU0}/link/"

HOST_CASES = [
    Case("D48", OK, "at most 65536", gpu() | files("65536")),
    Case("D48", OK, "no limit", files("unlimited")),
    Case("D48", OK, "at most 1024", files("1024")),  # neither GPU nor RDMA device: nothing is said against it
    Case("D48", WARNING, "more than 768 ranks", gpu() | files("1024")),
    Case("D48", PROBLEM, "each of 1024 ranks", gpu() | files("1024"), environment=BIG_JOB),
    Case("D48", UNKNOWN, "/proc/self/limits", gpu()),
    Case("D49", OK, "keep their highest clock", clocks("performance")),
    Case("D49", PROBLEM, "powersave keeps all CPUs", clocks("powersave")),
    Case("D49", PROBLEM, "keeps CPU 3", clocks("powersave") | clocks("performance", cpus=3)),
    Case("D49", WARNING, "all CPUs (schedutil)", clocks("schedutil")),
    Case(
        "D49",
        WARNING,
        "(powersave balance_performance)",
        clocks("powersave", "intel_pstate", preference="balance_performance"),
    ),
    Case("D49", OK, "highest clock", clocks("powersave", "amd-pstate-epp", preference="performance")),
    Case("D49", WARNING, "2000 of 3600 MHz", clocks("performance", limit="2000000")),
    Case("D49", UNKNOWN, "scaling_governor", numa(2)),
    Case("D50", OK, "does not move", numa(2) | {"/proc/sys/kernel/numa_balancing": "0\n"}),
    Case("D50", WARNING, "numa_balancing is 1", numa(2) | {"/proc/sys/kernel/numa_balancing": "1\n"}),
    Case("D50", ABSENT, "one NUMA node", numa(1) | {"/proc/sys/kernel/numa_balancing": "1\n"}),
    Case("D50", UNKNOWN, "/proc/sys/kernel/numa_balancing", numa(2)),
    Case("D51", OK, "do not sleep", gpu() | {f"{SLEEPY}l1_aspm": "0\n"}),
    Case("D51", WARNING, f"link of {GPU0} may sleep", gpu() | {f"{SLEEPY}l0s_aspm": "0\n", f"{SLEEPY}l1_aspm": "1\n"}),
    Case("D51", OK, "do not sleep", nic(config=config(express={0x10: 0x40}))),
    Case("D51", WARNING, "may sleep", nic(config=config(express={0x10: 0x42}))),
    Case("D51", UNKNOWN, "needs root", gpu(config=bytes(64))),
    Case("D51", ABSENT, "no GPU"),
    Case("D56", OK, "no message", nic(), {"dmesg": ENOUGH}),
    Case("D56", PROBLEM, "insufficient power on the PCIe slot (27W)", nic(), {"dmesg": POWER + NARROW}),
    Case("D56", PROBLEM, "Bad or shorted cable", nic(), {"dmesg": MODULE}),
    Case("D56", WARNING, "63.008 Gb/s available", nic(), {"dmesg": NARROW}),
    Case("D56", OK, "no message", gpu(), {"dmesg": NARROW}),  # of a card that is neither
    Case("D56", UNKNOWN, "dmesg", nic()),
    Case("D52", OK, "no limit", second("job_7", "max", 0)),
    Case("D52", OK, "24 GiB left", gpu() | second("job_7", str(32 * GB), 12 * GB, cache=4 * GB)),
    Case("D52", WARNING, "2 GiB left", gpu() | second("job_7", str(32 * GB), 30 * GB)),
    Case("D52", OK, "2 GiB left", second("job_7", str(32 * GB), 30 * GB)),
    Case(
        "D52",
        PROBLEM,
        "4 GiB left of the control group's 32 GiB for 8 ranks",
        second("job_7", str(32 * GB), 28 * GB),
        environment=TORCHRUN,
    ),
    Case("D52", WARNING, "killed 3 processes", second("job_7", str(32 * GB), GB, killed=3)),
    Case("D52", OK, "no limit", first(NO_LIMIT, GB)),
    Case("D52", PROBLEM, "512 MiB left", first(8 * GB, 8 * GB - (512 << 20))),
    Case("D52", PROBLEM, "512 MiB left", first(8 * GB, 8 * GB - (512 << 20), "/../../docker/1f")),
    Case("D52", UNKNOWN, "/proc/self/cgroup"),
    Case(
        "D52",
        UNKNOWN,
        "memory controller",
        {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cgroup.controllers": "cpu\n"},
    ),
    Case("D41", WARNING, "set to 1095 of 1980 MHz", gpu(), {**smi(**APPLICATIONS), "dmesg": ""}),
    Case("D41", WARNING, "SM clock 600 of 1980 MHz", gpu(), {**smi(**LOCKED), "dmesg": ""}),
    Case("D41", OK, "no slow-down", gpu(), {**smi(**LOCKED | {"Clocks_Event_Reasons__Idle": "Active"}), "dmesg": ""}),
    Case(
        "D41",
        OK,
        "no slow-down",
        gpu(),
        {**smi(**LOCKED | {"Clocks_Event_Reasons__SW_Power_Cap": "Active"}), "dmesg": ""},
    ),
]
