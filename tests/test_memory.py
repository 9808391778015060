import subprocess
import sys

import pytest

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
