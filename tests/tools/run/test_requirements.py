from zipfile import ZipFile

import pytest

from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.template.model import TemplateError
from support.sam_applications import ONE_FUNCTION, http, write_application

SOURCE = "import chosen\ndef handler(event, context):\n    return chosen.VALUE\n"


def wheel(folder, version):
    """Build a wheel of the module `chosen`, whose VALUE is its version, and of the package `several`."""
    path = folder / f"chosen-{version}-py3-none-any.whl"
    info = f"chosen-{version}.dist-info"
    with ZipFile(path, "w") as archive:
        archive.writestr("chosen.py", f"VALUE = {version!r}\n")
        archive.writestr("several/__init__.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: chosen\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_requirements_are_installed_once_per_content(tmp_path):
    template = write_application(tmp_path, ONE_FUNCTION, {"f/app.py": SOURCE})
    requirements = tmp_path / "f/requirements.txt"
    requirements.write_text(f"# what it needs\n{wheel(tmp_path, '1.0')}\n")
    log: list[str] = []
    with serve(template, watch_interval_s=0, log=log.append) as app:
        assert http(app.url("/f")).body == b"1.0"
        requirements.write_text(f"{wheel(tmp_path, '2.0')}\n")
        assert http(app.url("/f")).body == b"2.0"
    with serve(template, watch_interval_s=0, log=log.append, debug=True) as app:
        assert http(app.url("/f")).body == b"2.0"
        requirements.write_text(f"# what it needs\n{wheel(tmp_path, '1.0')}\n")
        assert http(app.url("/f")).body == b"1.0"
    assert sum("installing" in line for line in log) == 2


@pytest.mark.parametrize("own", [{}, {"f": "2.0"}])
def test_requirements_of_a_layer_that_is_not_built_are_installed_behind_own_ones(own, tmp_path):
    layers = """      Layers: [!Ref Common, !Ref Made, !Ref Built]
      Common: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: common/}}
      Made: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: made/}}
      Built: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: built/}}
    """
    template = write_application(tmp_path, ONE_FUNCTION + layers, {"f/app.py": SOURCE})
    wheels = {name: wheel(tmp_path, version) for name, version in {"common": "1.0", **own}.items()}
    for name, content in {"made": "./no-such.whl", "built": "./no-such.whl", **wheels}.items():
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "requirements.txt").write_text(f"{content}\n")
    (tmp_path / "made/Makefile").touch()
    (tmp_path / "built/chosen-1.0.dist-info").mkdir()  # by sam build
    with serve(template, log=[].append) as app:
        assert http(app.url("/f")).body == own.get("f", "1.0").encode()


def test_a_module_with_the_name_of_a_package_is_named(tmp_path):
    modules = dict.fromkeys(("f/chosen.py", "f/several.py", "f/other.py"), "")
    sources = {"f/app.py": "def handler(event, context): pass\n", **modules}
    template = write_application(tmp_path, ONE_FUNCTION, sources)
    (tmp_path / "f/requirements.txt").write_text(f"{wheel(tmp_path, '1.0')}\n")
    log: list[str] = []
    with serve(template, log=log.append):
        pass
    found = sorted(each for each in log if "rename it" in each)
    assert [name in line for name, line in zip(modules, found, strict=False)] == [True, True]


def test_a_failed_installation_is_reported_with_the_command_to_try(tmp_path):
    write_application(tmp_path, ONE_FUNCTION, {"f/app.py": SOURCE, "f/requirements.txt": "./no-such.whl\n"})
    with (
        pytest.raises(TemplateError, match=r"F: .*requirements.txt.*-m pip install"),
        serve(tmp_path / "template.yaml"),
    ):
        pass
