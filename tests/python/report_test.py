"""The page opens offline, has all its parts, and shows any text from the data as text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import made_up
import pytest

from waywiser import _core
from waywiser.errors import InputError
from waywiser.report import palette, pictures
from waywiser.report.page import render
from waywiser.report.write import write_report
from waywiser.results import Results

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u2028{{7*7}}$x$\\'
_PACKED = re.compile(r'<script type="application/octet-stream" id="(\w+)">([^<]*)</script>')


def _replaced(value: Any, key: str, text: str) -> Any:
    """`value` with every string under `key` (at any depth) followed by `text`."""
    if isinstance(value, dict):
        return {
            name: one + text if name == key and isinstance(one, str) else _replaced(one, key, text)
            for name, one in value.items()
        }
    return [_replaced(one, key, text) for one in value] if isinstance(value, list) else value


def _page(folder: Path) -> tuple[str, dict[str, bytes]]:
    page = render(Results(folder))
    packed = {name: gzip.decompress(base64.b64decode(text)) for name, text in _PACKED.findall(page)}
    return _PACKED.sub("", page), packed


def test_every_mechanism_has_a_look_and_a_sentence() -> None:
    summaries = _core.mechanisms()
    assert set(palette.MECHANISMS) == set(summaries)
    assert all(text.endswith(".") for text in summaries.values())


def test_nothing_is_loaded_from_outside(tmp_path: Path) -> None:
    page, packed = _page(made_up.write(tmp_path))
    assert not re.findall(
        r"""(?:src|href|action|data)\s*=\s*["']?(?!#|data:image/svg)[^"'#\s>]+""", page.split("<script")[0]
    )
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src &#x27;none&#x27;" in page
    assert packed["plotly"].startswith(b"/**\n* plotly.js")
    assert len(page) + sum(len(gzip.compress(one)) * 4 // 3 for one in packed.values()) < 3_000_000


def test_content(tmp_path: Path) -> None:
    page, packed = _page(made_up.write(tmp_path))
    for section in (
        "best-paths",
        "matrices",
        "curves",
        "choices",
        "collectives",
        "verification",
        "unavailable",
        "rejected",
        "method",
    ):
        assert f'<section id="{section}">' in page
    assert page.index("63 of 66") > page.index('id="verification"')
    assert "above the limit of 30.0 GB/s" in page
    assert "libgdrapi.so.2: cannot open" in page
    words = " ".join(re.sub("<[^>]+>", " ", page[page.index('<section id="collectives">') :]).split())
    assert "4 ranks, gpu memory" in words
    assert "all-reduce 1 B to 1 MiB fused one shot 2.50 µs at 8 B 14.0 µs at 1 MiB nccl 3.25 × the time" in words
    assert 'class="banner"' not in page
    for at_once in ("", " (4)", " (8 of 12)"):
        assert f">All pairs at once{at_once}</button>" in page
    groups = json.loads(packed["data"])["groups"]
    assert [list(group["operations"]) for group in groups] == [["latency", "streaming", "bidirectional", "loaded"]] * 6
    assert sum(len(one["series"]) for group in groups for one in group["operations"].values()) == 132


def test_the_ways_to_files_of_each_file_system(tmp_path: Path) -> None:
    made_up.write(tmp_path)
    assert '<section id="files">' not in _page(tmp_path)[0]
    file = tmp_path / "plan.json"
    plan = json.loads(file.read_text())
    points = [{"bytes": 4096, "seconds": 1e-4}, {"bytes": 1 << 20, "seconds": 1e-3}]
    row = {"operation": "file_read_many", "memory": "host", "ranks": 1, "from_bytes": 0, "to_bytes": 1 << 20}
    row |= {"partner": "storage ext4 /data", "why": "the fastest", "expected": points}
    ways = [{"way": "io_uring(depth=8)", "ratio": 1}, {"way": "direct", "ratio": 1.5}]
    plan["rows"] += [{**row, "ways": ways}, {**row, "ways": ways, "memory": "gpu"}]
    file.write_text(json.dumps(plan))
    page, _ = _page(tmp_path)
    words = " ".join(re.sub("<[^>]+>", " ", page[page.index('<section id="files">') :]).split())
    assert "ext4 /data, host memory 1 range" in words
    assert "ext4 /data, gpu memory 1 range" in words
    assert "read-many 1 B to 1 MiB io uring(depth=8) 100 µs at 4 KiB 1.00 ms at 1 MiB direct 1.50 × the time" in words


@pytest.mark.parametrize(
    "key", ["mechanism", "machine", "name", "reason", "why", "limit_source", "via", "created", "driver"]
)
def test_hostile_text_is_harmless(key: str, tmp_path: Path) -> None:
    made_up.write(tmp_path)
    for stem in ("profile", "plan") if key != "name" else ("profile", "plan", "topology"):
        file = tmp_path / f"{stem}.json"
        text = HOSTILE[:48] if key == "mechanism" else HOSTILE  # the core refuses a longer one
        file.write_text(json.dumps(_replaced(json.loads(file.read_text()), key, text)))
    page, packed = _page(tmp_path)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert b"<script>alert" not in re.sub(rb'"(?:\\.|[^"\\])*"', b"", packed["data"])
    assert page.count("<script") == 1


def test_a_hostile_way_in_a_plan_is_refused(tmp_path: Path) -> None:
    made_up.write(tmp_path)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(_replaced(json.loads(file.read_text()), "way", HOSTILE)))
    with pytest.raises(InputError, match="is not a way: it has the form") as told:
        _page(tmp_path)
    assert "\n" not in str(told.value)


def test_simulated_is_said_in_big_letters(tmp_path: Path) -> None:
    made_up.write(tmp_path)
    profile = json.loads((tmp_path / "profile.json").read_text())
    (tmp_path / "profile.json").write_text(json.dumps({**profile, "simulated": True}))
    page, _ = _page(tmp_path)
    assert '<div class="banner" role="alert">Simulated: not a measurement</div>' in page


def test_report_writes_page_and_pictures(tmp_path: Path) -> None:
    made_up.write(tmp_path / "results", gpus=0)
    page = write_report(Results(tmp_path / "results"), tmp_path / "out")
    assert page == tmp_path / "out" / "report.html"
    pictures = sorted((tmp_path / "out" / "plots").glob("*.png"))
    assert len(pictures) >= 8
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


@pytest.fixture(scope="module")
def drawn_alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The pictures as one CPU draws them, by name."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.sched_getaffinity", lambda _: {0})
        files = pictures.write_pictures(Results(made_up.write(folder / "results", gpus=0)), folder / "drawn")
    assert sorted(files) == sorted((folder / "drawn").iterdir())
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.slow
@pytest.mark.parametrize("helper", ["draws", "fails", pytest.param("cannot start", marks=pytest.mark.long)])
def test_helpers_change_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: str, drawn_alone: dict[str, bytes]
) -> None:
    results = Results(made_up.write(tmp_path / "results", gpus=0))
    monkeypatch.setattr(pictures, "_ENOUGH_FOR_A_HELPER", 2)
    started: list[int] = []
    start = pictures._helper

    def helped(results: Results, folder: Path, share: int, shares: int) -> Any:
        started.append(share)
        if helper == "cannot start":
            return None
        return start(Results(tmp_path / "none") if helper == "fails" else results, folder, share, shares)

    monkeypatch.setattr(pictures, "_helper", helped)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    files = pictures.write_pictures(results, tmp_path / "drawn")
    assert sorted(files) == sorted((tmp_path / "drawn").iterdir())
    assert started == [1, 2]
    assert {file.name: file.read_bytes() for file in files} == drawn_alone


def test_without_plan_and_verification(tmp_path: Path) -> None:
    made_up.write(tmp_path)
    for name in ("plan", "verification", "topology"):
        (tmp_path / f"{name}.json").unlink()
    page, _ = _page(tmp_path)
    assert "Not verified yet" in page
    assert "NV18" in page
