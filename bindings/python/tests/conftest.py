import os

import pytest

import gestalt


@pytest.fixture
def uri():
    """A cluster's, from whoever runs the tests."""
    return os.environ["GESTALT_URI"]


@pytest.fixture
def client(uri):
    with gestalt.connect(uri, timeout=30, check_buffers=True) as client:
        yield client
