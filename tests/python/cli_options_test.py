"""Options that are the same in every verb, the configuration file, help texts, completion."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest
from verb_runs import Run

from waywiser import cli
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep
from waywiser.cli.program import build_command

ROOT = Path(__file__).parents[2]
# A command for each verb with a folder of results that says, as an error or a comment, that this folder has nothing.
EMPTY = {
    "plan": ["plan"],
    "explain": ["explain", "host0", "host0", "1K"],
    "report": ["report"],
    "apply": ["apply", "--for", "ucx"],
    "verify": ["verify", "--with", "ucx"],
}
MAIN = [sys.executable, "-c", "from waywiser.cli import main; main()"]
NAMES = ("--results", "-r")


def commands() -> dict[str, Any]:
    run = cli.run
    found: dict[str, Any] = build_command(list(cli.VERBS)).commands
    cli.run = run  # the module of the verb `run` has taken its place
    return found


def options(command: Any) -> set[str]:
    return {word for one in command.params if one.param_type_name == "option" for word in one.opts}


@pytest.mark.parametrize("verb", EMPTY)
def test_one_name_for_the_folder_of_results(verb: str, run: Run, tmp_path: Path) -> None:
    for name in NAMES:
        code, _, err = run(*EMPTY[verb], name, str(tmp_path / "named"))
        assert code == 2 and str(tmp_path / "named") in err, (name, err)


WITHOUT_RESULTS = (
    *("demo", "topology", "machine", "network", "status", "serve", "remote", "compare", "simulate", "calibrate"),
)


def test_every_verb_has_the_same_names() -> None:
    for verb, command in commands().items():
        folder = next((one for one in command.params if "--results" in one.opts), None)
        if verb in (
            "demo",
            "topology",
            "machine",
            "network",
            "status",
            "serve",
            "remote",
            "compare",
            "simulate",
            "calibrate",
        ):
            assert folder is None, verb
        else:
            assert set(folder.opts) == set(NAMES), verb
            assert folder.envvar == "WAYWISER_RESULTS", verb


def test_every_verb_prints_json() -> None:
    for verb, command in commands().items():
        assert "--json" in options(command), verb


def test_where_the_folder_of_results_comes_from(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command line before environment before configuration file before default."""
    config = tmp_path / "c.toml"
    config.write_text(f'results = "{tmp_path}/file"\n')
    monkeypatch.chdir(tmp_path)

    def looked_in(*arguments: str) -> str:
        found = re.search(r"waywiser: (\S+): no profile", run("plan", *arguments)[2])
        assert found
        return found[1]

    assert looked_in() == "waywiser-results"
    monkeypatch.setenv("WAYWISER_CONFIG", str(config))
    assert looked_in() == f"{tmp_path}/file"
    monkeypatch.setenv("WAYWISER_RESULTS", f"{tmp_path}/environment")
    assert looked_in() == f"{tmp_path}/environment"
    assert looked_in("-r", f"{tmp_path}/line") == f"{tmp_path}/line"


def test_the_files_of_user_and_system(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from waywiser.cli import config

    system, user = tmp_path / "etc.toml", tmp_path / "home/waywiser.toml"
    user.parent.mkdir()
    monkeypatch.setattr(config, "_SYSTEM", system)
    given = {"XDG_CONFIG_HOME": str(user.parent)}
    assert config.config_files(given) == []
    system.write_text('[doctor]\nonly = "D45"\nall = true\n')
    user.write_text('[doctor]\nonly = "D44"\n')
    assert config.config_files(given) == [system, user]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user.parent))
    shown = json.loads(run("doctor", "--json")[1])
    assert [one["id"] for one in shown["checks"]] == ["D44"]
    shown = json.loads(run("doctor", "--json", "--only", "D33")[1])
    assert [one["id"] for one in shown["checks"]] == ["D33"]
    assert config.config_files({**given, "WAYWISER_CONFIG": "x"}) == [Path("x")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", "not valid TOML"),
        ("[nope]\n", "[nope] is no verb of waywiser"),
        ("[plan]\nnope = 1\n", "[plan] nope: there is no such option: it has json, machine"),
        ("[plan]\nhelp = true\n", "[plan] help: there is no such option"),
        ("[plan]\njson = 1\n", "[plan] json: must be true or false"),
        ("results = true\n", "results: must be a text or a number"),
        ('results = ["a"]\n', "results: must be one value"),
        ("results = 1979-05-27\n", "results: must be a text or a number"),
    ],
)
def test_a_mistake_in_the_configuration_file(
    text: str, message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    monkeypatch.setenv("WAYWISER_CONFIG", str(file))
    code, out, err = run("plan")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"waywiser: {file}: {message}")
    assert run("--version")[0] == 0  # which needs no file


@pytest.mark.parametrize("text", ["[verify]\nranks = 1\n", '[verify]\nranks = "many"\n', '[verify]\ntry = "A=1"\n'])
def test_values_that_an_option_refuses(text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    monkeypatch.setenv("WAYWISER_CONFIG", str(file))
    code, _, err = run("verify", "--with", "ucx")
    assert code == 2 and err.startswith(f"waywiser: {file}: [verify] {text.split()[1]}: ") and err.count("\n") == 1


def test_a_file_that_is_named_and_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_CONFIG", "/nonexistent/w.toml")
    assert run("plan")[::2] == (2, "waywiser: /nonexistent/w.toml: cannot read: No such file or directory\n")


def test_the_binding_as_json(run: Run, tmp_path: Path) -> None:
    command = ["explain", "--binding", "--machine", "dgx-a100", "-n", "8", "--results", str(tmp_path), "--json"]
    code, out, _ = run(*command)
    ranks = json.loads(out)
    assert code == 0 and [one["rank"] for one in ranks] == list(range(8))
    assert [one["gpu"] for one in ranks] == [f"gpu{rank}" for rank in range(8)]
    assert len({one["nic"] for one in ranks}) > 1 and all(one["cpus"] for one in ranks)


def test_a_dry_run_as_json(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_", "PMI", "WAYWISER_RANK"))]:
        monkeypatch.delenv(name)
    code, out, _ = run("run", "-n", "2", "--dry-run", "--json", "--results", str(tmp_path), "true")
    assert code == 0 and [one["rank"] for one in json.loads(out)] == [0, 1]
    code, _, err = run("run", "--json", "true")
    assert code == 2 and "--json is for --dry-run" in err


def test_settings_as_json(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("env", "--results", str(tmp_path), "--fingerprint", "abcd1234", "--json")
    assert code == 0 and json.loads(out)["settings"] == [] and json.loads(out)["fingerprint"] == "abcd1234"
    won, guessed = (Setting(name, f"{name.upper()}_X", "1", "", "measured", name) for name in ("ucx", "nccl"))
    keep(tmp_path, Settings("abcd1234", "node", settings=(replace(won, proof="faster"), guessed)))
    words = ("env", "--results", str(tmp_path), "--fingerprint", "abcd1234", "--json")

    def names(*more: str) -> list[str]:
        code, out, _ = run(*words, *more)
        assert code == 0
        return [one["name"] for one in json.loads(out)["settings"]]

    assert names() == ["UCX_X", "NCCL_X"]
    assert names("--proved") == ["UCX_X"] and names("--for", "nccl") == ["NCCL_X"]


def test_reports_as_json(run: Run, tmp_path: Path) -> None:
    folder = str(made_up.write(tmp_path / "r", 2))
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("NodeType,GPUHours,CommShare\nmade,100,0.5\n")
    words = ["report", "--results", folder, "--no-pictures", "--json"]
    assert json.loads(run(*words)[1]) == {"report": f"{folder}/report.html", "savings": None}
    code, out, _ = run(*words, "--savings", str(jobs), "--gain", "made=2")
    saved = json.loads(out)["savings"]
    assert code == 0 and [(one["gain"], one["saved"]) for one in saved["rows"]] == [(2.0, 25.0)]
    assert any("share of communication" in line for line in saved["assumptions"])


def test_the_page_of_a_machine_goes_into_the_folder_that_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["report", "--machine", "recorded-4xh200", "--no-pictures", "--json"]
    assert json.loads(run(*words, "--results", "named")[1])["report"] == "named/report.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["named"]
    made_up.write(tmp_path / "other", 2)
    before = sorted((tmp_path / "other").iterdir())
    for more in ([], ["--output", "page"]):
        code, out, err = run(*words, "--results", "other", *more)
        assert (code, out, err.count("\n")) == (2, "", 1) and "--results other: not the results of" in err
    assert sorted((tmp_path / "other").iterdir()) == before
    monkeypatch.setenv("WAYWISER_RESULTS", "other")  # of this machine, for all verbs
    assert json.loads(run(*words)[1])["report"] == "recorded-4xh200-report/report.html"


def test_traffic_as_json_is_printed_once(run: Run, tmp_path: Path) -> None:
    code, _, err = run("monitor", "--json", "--results", str(tmp_path))
    assert code == 2 and "--json is for --once" in err


def test_the_bench_as_csv(run: Run) -> None:
    words = ["bench", "latency", "all_reduce", "--machine", "hse-a", "--sizes", "8,64K"]
    code, out, _ = run(*words, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    told = json.loads(run(*words, "--json")[1])["rows"]
    assert code == 0 and len(rows) == len(told) == 4
    for row, wanted in zip(rows, told, strict=True):
        assert (row["operation"], row["bytes"], row["library"]) == (
            wanted["operation"],
            str(wanted["bytes"]),
            "waywiser",
        )
        assert float(row["us"]) == wanted["us"] and row["label"] == "Simulated: not a measurement"
    assert run(*words, "--csv", "--json")[::2] == (2, "waywiser: --json and --csv: write one of them\n")


def test_measure_as_json(run: Run, tmp_path: Path) -> None:
    code, _, err = run("measure", "--json", "--format", "csv", "--results", str(tmp_path))
    assert code == 2 and "--json and --format csv" in err


def test_help_shows_no_types_of_python() -> None:
    for verb, command in commands().items():
        context = command.make_context(verb, [], resilient_parsing=True)
        text = command.get_help(context)
        assert not re.search(r"<[a-zA-Z]|list\[|\]\.\.\.\]|\{", text), (verb, text)


def test_help_is_in_the_order_of_use() -> None:
    verbs = list(cli.VERBS)
    assert verbs[:3] == ["demo", "tune", "report"]
    for first, then in (("explain", "compare"), ("run", "status"), ("apply", "verify"), ("verify", "env")):
        assert verbs.index(first) < verbs.index(then)
    shown = subprocess.run([*MAIN, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert [line.split()[0] for line in shown.partition("Commands:\n")[2].splitlines()] == verbs


def test_the_page_has_every_verb_with_its_options() -> None:
    page = (ROOT / "docs/cli.md").read_text()
    entries: dict[str, str] = {}
    for found in re.finditer(r"^`waywiser (\w+).*?(?=^`|^## )", page, re.MULTILINE | re.DOTALL):
        entries[found[1]] = entries.get(found[1], "") + found[0]
    for verb, command in commands().items():
        assert verb in entries, verb
        for one in command.params:
            if one.param_type_name == "option" and not {"--help", "--results", "--json"} & set(one.opts):
                words = [*one.opts, *one.secondary_opts]
                assert any(re.search(rf"{word}(?![\w-])", entries[verb]) for word in words), (verb, words)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("waywiser be", "bench"), ("waywiser bench --ag", "--against"), ("waywiser topology --js", "--json")],
)
def test_bash_completes(words: str, wanted: str) -> None:
    """As bash calls it, with the line in COMP_WORDS."""
    given = {"_WAYWISER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    answer = subprocess.run(MAIN, env=os.environ | given, capture_output=True, text=True, timeout=60)
    assert wanted in answer.stdout.split(), answer.stderr
