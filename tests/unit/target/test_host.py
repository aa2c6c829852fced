import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_clock import FakeClock

from intarsia.support.errors import ArtifactError
from intarsia.target import Host, cpu
from intarsia.target.cpu import usable_cores

XEON = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz
stepping\t: 7
flags\t\t: fpu sse sse2 fma sse4_1 sse4_2 avx f16c avx2 smep avx512f avx512_vnni amx_tile svm

processor\t: 1
model name\t: another core
flags\t\t: avx10
"""
GRAVITON = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd crc32 atomics fphp asimdhp asimddp sve i8mm bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40
CPU revision\t: 1
"""
HERE = Host(
    cpu_model="Intel Xeon",
    architecture="x86_64",
    isa=("avx", "avx2", "avx512f"),
    cores=2,
    l1d_bytes=32768,
    l2_bytes=1048576,
    l3_bytes=37486592,
    system="Linux 6.8",
    python="3.11.9",
    toolchains=(("onnxruntime", "1.31.1"), ("openvino", "2026.4.1")),
    thread_policy="one pool, no spinning",
)
THERE = replace(
    HERE,
    cpu_model="AMD EPYC",
    isa=("avx", "avx2", "fma"),
    cores=64,
    toolchains=(("onnxruntime", "1.30.0"), ("torch", "2.13.0")),
    thread_policy="",
)

HOSTS = st.builds(
    Host,
    cpu_model=st.text(),
    architecture=st.text(),
    isa=st.lists(st.text(), unique=True).map(tuple),
    cores=st.integers(1, 1024),
    l1d_bytes=st.integers(0),
    l2_bytes=st.integers(0),
    l3_bytes=st.integers(0),
    system=st.text(),
    python=st.text(),
    toolchains=st.dictionaries(st.text(), st.text()).map(lambda versions: tuple(versions.items())),
    thread_policy=st.text(),
    gpus=st.lists(st.text()).map(tuple),
)


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cache_files(*caches: tuple[str, str, str]) -> dict[str, str]:
    folder = "sys/devices/system/cpu/cpu0/cache"
    return {
        f"{folder}/index{index}/{name}": f"{text}\n"
        for index, cache in enumerate(caches)
        for name, text in zip(("level", "type", "size"), cache, strict=True)
    }


def test_an_intel_machine(tmp_path: Path) -> None:
    caches = cache_files(("1", "Data", "32K"), ("1", "Instruction", "64K"), ("2", "Unified", "1024K"))
    caches |= {
        key.replace("index0", "index3"): text for key, text in cache_files(("3", "Unified", "36M")).items()
    }
    host = Host.detect(root=lay_out(tmp_path, {"proc/cpuinfo": XEON, **caches}), cores=4)
    assert host.cpu_model == "Intel(R) Xeon(R) Processor @ 2.50GHz (family 6 model 85 stepping 7)"
    assert host.isa == (
        "amx_tile", "avx", "avx2", "avx512_vnni", "avx512f", "f16c", "fma", "sse4_1", "sse4_2",
    )  # fmt: skip  # a table reads better in one line
    assert (host.l1d_bytes, host.l2_bytes, host.l3_bytes) == (32 << 10, 1 << 20, 36 << 20)
    assert host.cores == 4


def test_an_arm_machine(tmp_path: Path) -> None:
    host = Host.detect(root=lay_out(tmp_path, {"proc/cpuinfo": GRAVITON}))
    assert host.cpu_model == "implementer 0x41 part 0xd40 revision 1"
    assert host.isa == ("asimddp", "asimdhp", "bf16", "fphp", "i8mm", "neon", "sve")


def test_a_machine_without_these_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "release", lambda: "24.1.0")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    host = Host.detect(root=tmp_path)
    assert (host.cpu_model, host.architecture, host.system) == ("unknown arm64", "arm64", "Darwin 24.1")
    assert (host.isa, host.cores, host.l1d_bytes, host.l3_bytes) == (("neon",), 10, 0, 0)


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000\n", 8), ("250000 100000\n", 3), ("50000 100000\n", 1), ("", 8)]
)
def test_usable_cores_follow_affinity_and_container_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert Host.detect(root=lay_out(tmp_path, {"sys/fs/cgroup/cpu.max": quota})).cores == cores


CGROUP_1 = "sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        pytest.param({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, 8, id="version 1 without a quota"),
        pytest.param({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n"}, 2, id="version 1"),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/one\n0::/\n",
                f"{CGROUP_1}/docker/cpu.cfs_quota_us": "400000\n",
                f"{CGROUP_1}/docker/one/cpu.cfs_quota_us": "300000\n",
            },
            3,
            id="version 1, the smallest of nested groups",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/user.slice/job.scope\n",
                "sys/fs/cgroup/user.slice/cpu.max": "500000 100000\n",
                "sys/fs/cgroup/user.slice/job.scope/cpu.max": "max 100000\n",
            },
            5,
            id="version 2, the quota of a group around",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/not/mounted/here\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"},
            1,
            id="version 2, the path of the host in a container",
        ),
    ],
)
def test_usable_cores_follow_the_quotas_of_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    periods = {name.replace("quota", "period"): "100000\n" for name in files if name.endswith("cfs_quota_us")}
    assert Host.detect(root=lay_out(tmp_path, {**files, **periods})).cores == cores


def test_this_machine() -> None:
    host = Host.detect(toolchains=[("openvino", "2"), ("onnxruntime", "1")], thread_policy="shared")
    assert host == Host.detect(toolchains=[("onnxruntime", "1"), ("openvino", "2")], thread_policy="shared")
    assert host.cpu_model != ""
    assert host.python == platform.python_version()
    assert host.cores >= 1


def test_detect_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    assert Host.detect().architecture == platform.machine()


@given(HOSTS)
def test_json_reads_back(host: Host) -> None:
    assert Host.from_json(json.loads(json.dumps(host.to_json()))) == host


@given(HOSTS, HOSTS)
def test_digest_and_differences_tell_what_equality_tells(one: Host, other: Host) -> None:
    assert (one.digest == other.digest) is (one == other)
    assert (one.differences(other) == ()) is (one == other)
    assert one.differences(one) == ()


def test_digest_is_the_same_in_every_process() -> None:
    program = (
        "import json, sys\nfrom intarsia.target import Host\n"
        "print(Host.from_json(json.load(sys.stdin)).digest)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(HERE.to_json()),
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == HERE.digest


@pytest.mark.parametrize("name", sorted(HERE.to_json()))
def test_every_field_counts(name: str) -> None:
    values = {"isa": ("avx",), "toolchains": (), "cores": 3, "l1d_bytes": 1, "l2_bytes": 1, "l3_bytes": 1}
    changed = replace(HERE, **{name: values.get(name, "other")})  # type: ignore[arg-type]  # a value of its type
    assert changed.digest != HERE.digest
    assert HERE.differences(changed)


def test_differences() -> None:
    assert HERE.differences(THERE) == (
        "CPU model: Intel Xeon here, AMD EPYC there",
        "usable cores: 2 here, 64 there",
        "thread policy: one pool, no spinning here, none there",
        "instruction sets only here: avx512f",
        "instruction sets only there: fma",
        "toolchain onnxruntime: 1.31.1 here, 1.30.0 there",
        "toolchain openvino: 2026.4.1 here, none there",
        "toolchain torch: none here, 2.13.0 there",
    )


def test_isa_missing_keeps_the_order_asked_for() -> None:
    assert HERE.isa_missing(["fma", "avx2", "amx_tile"]) == ("fma", "amx_tile")
    assert HERE.isa_missing(HERE.isa) == ()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"cores": None}, "the host record has no 'cores'"),
        ({"cores": "2"}, "the host record has '2' as 'cores'"),
        ({"isa": ["avx", 2]}, "the host record has ['avx', 2] as 'isa'"),
        ({"isa": "avx"}, "the host record has 'avx' as 'isa'"),
        ({"toolchains": {"openvino": 2}}, "the host record has {'openvino': 2} as 'toolchains'"),
        ({"gpu": "none"}, "the host record has an unknown 'gpu'"),
    ],
)
def test_damaged_record(change: dict[str, object], expected: str) -> None:
    merged = HERE.to_json() | change
    with pytest.raises(ArtifactError) as caught:
        Host.from_json({name: value for name, value in merged.items() if value is not None})
    assert str(caught.value) == expected


def test_quotas_of_this_machine_are_read_again_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, reads = FakeClock(), list[Path]()

    def read(root: Path) -> list[int]:
        reads.append(root)
        return [1]

    monkeypatch.setattr(cpu, "_quotas", read)
    monkeypatch.setattr(time, "monotonic", clock)
    cpu._machine_quotas.cache_clear()
    try:
        for _ in range(3):
            assert usable_cores(Path("/")) == 1
        assert len(reads) == 1
        clock.advance(1)
        assert usable_cores(Path("/")) == 1
        assert len(reads) == 2
    finally:
        cpu._machine_quotas.cache_clear()
