import marshal
import re
import sys
import tomllib
import zipfile
from io import BytesIO
from itertools import product
from pathlib import Path
from types import CodeType

import pytest
from packaging.requirements import Requirement

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.template.yaml_reader import load
from support import skips
from support.interpreters import output_of, run
from support.layers import (
    LAYER,
    OTHER_ARCHITECTURE,
    OTHER_RUNTIME,
    copy_layer,
    layer_of_other_target,
    layer_of_runtime,
    make_layer,
    targets_of,
)
from support.project import ROOT, functions
from support.sam_build import NATIVE_RUNTIME, environment

OLDEST, *_, NEWEST = load(ROOT / "template.yaml")["Parameters"]["PythonRuntime"]["AllowedValues"]

UNCHECKED_HASH = b"\x01\x00\x00\x00"  # PEP 552: hash-based, and never compared with the source
PYC_HEADER_BYTES = 16

pytestmark = pytest.mark.slow


def targets(layer: Path) -> tuple[set[str], set[str]]:
    """Return the runtimes and architectures of the extension modules of a layer."""
    return targets_of((str(path), path.read_bytes()) for path in (layer / "python").rglob("*.so"))


def zipped_bytes(folder: Path) -> int:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return len(buffer.getvalue())


@pytest.mark.skipif(sys.platform != "linux", reason=f"{skips.LINUX}: the layer's wheels")
def test_the_layer_has_all_dependencies(built):
    site = built.layer / "python"
    program = f"""
import sys
sys.path.insert(0, {str(site)!r})
import mcp_roundtrip, msgspec, pydantic, jwt, aws_lambda_powertools, aws_lambda_powertools.metrics
from mcp_roundtrip.state.jws import LocalKey
LocalKey.generate().sign(b"")
third_party = [m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)]
print(*third_party, sep="\\n")
"""
    # -I and -S exclude the site-packages and the environment of this computer.
    printed = output_of(sys.executable, "-I", "-S", "-c", program, timeout=60)
    assert any(line.startswith(f"{site}/mcp_roundtrip/") for line in printed.splitlines())
    assert "site-packages" not in printed


def test_every_module_of_the_layer_is_compiled_for_the_path_on_lambda(built):
    site = built.layer / "python"
    tag = sys.implementation.cache_tag
    sources = sorted(site.rglob("*.py"))
    assert len(sources) > 100
    for source in sources:
        content = (source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc").read_bytes()
        assert content[4:8] == UNCHECKED_HASH
    compiled = site / "mcp_roundtrip/__pycache__" / f"errors.{tag}.pyc"
    code = marshal.loads(compiled.read_bytes()[PYC_HEADER_BYTES:])
    assert isinstance(code, CodeType)
    assert code.co_filename == "/opt/python/mcp_roundtrip/errors.py"  # in tracebacks


def test_the_layer_has_the_package_for_its_target_and_nothing_for_development(built):
    package = built.layer / "python/mcp_roundtrip"
    shipped = {path.name for path in package.iterdir()} - {"__pycache__"}
    source = {path.name for path in (LAYER / "mcp_roundtrip").iterdir()} - {"__pycache__"}
    assert shipped == source
    assert not list((built.layer / "python").glob("mcp_roundtrip_*"))
    assert not (built.layer / "python/bin").exists()
    assert not list((built.layer / "python").glob("*.dist-info/RECORD"))
    assert not list((built.layer / "python").rglob("boto3"))
    # It has 2 MB less with the compression of sam, which takes three times as long.
    assert zipped_bytes(built.layer) < 24_000_000
    assert targets(built.layer) == ({NATIVE_RUNTIME}, {NATIVE_ARCHITECTURE})


def test_every_function_is_built_from_its_folder(built):
    resources = load(built.template)["Resources"]
    assert resources["RoundtripLayer"]["Properties"]["ContentUri"] == "RoundtripLayer"
    for logical_id, folder in functions().items():
        assert resources[logical_id]["Properties"]["CodeUri"] == logical_id
        source, copy = ROOT / "functions" / folder, built.function(logical_id)
        expected = {path.relative_to(source) for path in source.rglob("*") if "__pycache__" not in path.parts}
        shipped = {path.relative_to(copy) for path in copy.rglob("*")}
        assert shipped == expected
        assert Path("app.py") in shipped


def test_a_layer_without_bytecode_is_refused_with_a_remedy(tmp_path):
    done = make_layer(tmp_path, "INTERPRETER=", target="python3.14-arm64")
    assert done.returncode != 0
    assert "uv python install 3.14" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_layer_for_another_platform_is_built_without_its_interpreter_on_request():
    """So the lock has a wheel of every package for the newest runtime."""
    layer = layer_of_other_target()
    assert NEWEST in (NATIVE_RUNTIME, OTHER_RUNTIME)
    assert targets(layer) == ({OTHER_RUNTIME}, {OTHER_ARCHITECTURE})
    assert list(layer.rglob("pydantic/main.py"))
    assert not list(layer.rglob("*.pyc"))


def test_every_target_the_template_offers_has_its_working_directory():
    parameters = load(ROOT / "template.yaml")["Parameters"]
    values = (parameters[name]["AllowedValues"] for name in ("PythonRuntime", "Architecture"))
    offered = [f"{runtime}-{architecture}" for runtime, architecture in product(*values)]
    assert sorted(path.name for path in (LAYER / "targets").iterdir()) == sorted(offered)


def test_the_lock_has_a_wheel_of_every_package_for_the_oldest_runtime():
    assert targets(layer_of_runtime(OLDEST)) == ({OLDEST}, {NATIVE_ARCHITECTURE})


def test_a_file_with_another_hash_is_not_installed(tmp_path):
    copy = copy_layer(tmp_path)
    lock = copy / "requirements.lock"
    [pinned] = re.findall(r"^typing-extensions==\S+", lock.read_text(), re.MULTILINE)
    lock.write_text(f"{pinned} --hash=sha256:{'0' * 64}\n")
    target = f"{OTHER_RUNTIME}-{NATIVE_ARCHITECTURE}"
    done = make_layer(tmp_path, target=target, copy=copy, PIP_DRY_RUN="1", WITHOUT_BYTECODE="1")
    assert done.returncode != 0
    assert "HASHES" in done.stderr


def test_the_lock_satisfies_the_requirements_of_the_layer_which_are_those_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    required = (LAYER / "requirements.txt").read_text().split()
    assert sorted(required) == sorted(declared)
    lines = (LAYER / "requirements.lock").read_text().replace("\\\n", "").splitlines()
    locked = [Requirement(line.partition("--hash")[0]) for line in lines if not line.startswith("#")]
    versions = {each.name: str(each.specifier).removeprefix("==") for each in locked}
    for each in map(Requirement, required):
        assert each.specifier.contains(versions[each.name]), f"run make lock: {each}"


def test_requirements_of_a_function_are_part_of_its_build(tmp_path):
    (tmp_path / "requirements.txt").write_text("anything\n")
    command = ["make", "--makefile", str(ROOT / "functions/Makefile"), "build-WeatherFunction"]
    env = environment() | {"ARTIFACTS_DIR": str(tmp_path / "out")}
    done = run(*command, cwd=tmp_path, env=env)
    assert done.returncode != 0
    assert "requirements.txt" in done.stderr
