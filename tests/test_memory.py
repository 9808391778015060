import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from vit.memory import all_stays

ROOT = Path(__file__).resolve().parents[1]

MEASURE = """
import resource, sys, torch
from vit.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def work():
    torch.ones(10, 1 << 20)  # 40 MB: by itself, glibc hands back whatever is larger than 32 MB
for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", MEASURE, how], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_freed_memory_is_not_asked_of_the_system_again():
    assert page_faults("keep") < page_faults("leave") / 5


GIVE_BACK = """
import torch
from vit.memory import MEGABYTE, give_back, keep_freed_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 // MEGABYTE
keep_freed_memory()
blocks = [torch.ones(4, MEGABYTE) for _ in range(20)]
del blocks
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_what_was_kept_can_be_given_back():
    done = subprocess.run([sys.executable, "-c", GIVE_BACK], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 250  # of 320 MB


class Thing:
    pass


@pytest.fixture
def collector():
    """Python's, as it was before."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


def test_no_garbage_is_looked_for_in_what_stays(collector):
    with all_stays():
        things = [Thing() for _ in range(1000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert not any(type(each) is Thing for each in gc.get_objects()) and len(things) == 1000
    ring = Thing()
    ring.self, gone = ring, weakref.ref(ring)
    del ring
    made = 0
    while gone() is not None and made < 100_000:  # by itself
        more, made = Thing(), made + 1
        more.self = more
    assert 1_000 < made < 100_000


def test_garbage_is_looked_for_again_where_a_start_failed(collector):
    frozen = gc.get_freeze_count()
    with pytest.raises(ValueError), all_stays():
        raise ValueError
    assert gc.isenabled() and gc.get_freeze_count() == frozen


STARTED = """
import gc, runpy, sys
sys.path.insert(0, "")
from vit.page import build  # Gradio's launch, which would serve for ever, is replaced
import gradio
gradio.Blocks.launch = lambda page, **options: print(gc.isenabled(), gc.get_freeze_count() > 100_000)
sys.argv = ["app.py", "--port", "0"]
runpy.run_path("app.py", run_name="__main__")
"""


def test_the_app_looks_for_garbage_again_when_it_serves():
    done = subprocess.run([sys.executable, "-c", STARTED], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True True", done.stderr
