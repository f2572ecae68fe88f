"""Machine code of modules: how instructions are selected for kernels as they are written, and for nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from eshkol.llvm.objects import assembly
from eshkol.llvm.passes import KERNEL, QUICK_KERNEL, SINGLE_UNIT
from eshkol.llvm.targets import host

TEXT = """
define double @f(ptr %x, i64 %k) {
  %room = alloca double
  %at = getelementptr double, ptr %x, i64 %k
  %a = load double, ptr %at
  %b = fmul double %a, %a
  store double %b, ptr %room
  %c = load double, ptr %room
  %d = fadd double %c, %a
  ret double %d
}
"""
SLOW_KERNEL = replace(QUICK_KERNEL, quickly=False)


def test_only_kernels_as_they_are_written_are_selected_quickly():
    before = {pipeline: assembly(TEXT, host(), pipeline) for pipeline in (KERNEL, SINGLE_UNIT, SLOW_KERNEL)}
    quick = assembly(TEXT, host(), QUICK_KERNEL)
    assert quick != before[SLOW_KERNEL]  # LLVM has done as it was told
    assert before == {pipeline: assembly(TEXT, host(), pipeline) for pipeline in before}
    assert assembly(TEXT, host(), QUICK_KERNEL) == quick


def test_threads_that_begin_to_select_quickly_do_not_change_how_others_do():
    pipelines = [QUICK_KERNEL, SINGLE_UNIT, KERNEL, SLOW_KERNEL] * 4
    wanted = [assembly(TEXT, host(), pipeline) for pipeline in pipelines]
    with ThreadPoolExecutor(8) as pool:  # machines are each thread's own
        assert [*pool.map(lambda pipeline: assembly(TEXT, host(), pipeline), pipelines)] == wanted
