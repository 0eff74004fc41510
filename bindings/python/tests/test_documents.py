"""What documents show works."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
SAMPLES = [
    pytest.param(sample, id=f"{path.name}-{at}")
    for path in [ROOT / "docs/python-client.md", ROOT / "bindings/python/README.md"]
    for at, sample in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


def test_there_are_samples():
    assert len(SAMPLES) == 5


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_runs(sample, uri):
    exec(compile(sample.replace("gestalt://127.0.0.1:11311/default", uri), "sample", "exec"), {})
