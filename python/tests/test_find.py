"""The function that --model names: found in the current folder, or missed with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from placer_runtime import models
from placer_runtime.errors import FormatError


def test_current_folder(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "found_here.py").write_text("def make(n=3):\n    return n\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/"])
    assert models.find("found_here:make")(n=4) == 4


@pytest.mark.parametrize("model, want", [
    ("no_such_module:make", "no module no_such_module in "),
    ("json.no_such_module:make", "no module json.no_such_module in "),
    ("lacks_one:make", "No module named 'what_it_imports'"),
    ("json:no_such_function", "has no attribute 'no_such_function'; FUNCTION is one that the module defines"),
    ("json", "want PKG.MODULE:FUNCTION"),
    (":make", "want PKG.MODULE:FUNCTION"),
])
def test_what_is_wrong(tmp_path: Any, monkeypatch: Any, model: str, want: str) -> None:
    (tmp_path / "lacks_one.py").write_text("import what_it_imports\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError) as e:
        models.find(model)
    assert f"--model {model}: " in str(e.value) and want in str(e.value)
