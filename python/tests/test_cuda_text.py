"""NVIDIA's own compilers take the CUDA kernels: NVRTC to PTX, ptxas to the machine code of each generation of GPUs.

No GPU is needed. `ptxas -v` tells how many registers a kernel spills to memory: none may.
"""

import ctypes
import re
import subprocess

import pytest
import standin

ARCHITECTURES = {12: (70, 80, 89, 90, 120), 13: (80, 89, 90, 120)}
SPILLS = """
extern "C" __global__ void __launch_bounds__(1024) spills(const double *a, double *out) {
    double x[60];
    for (int i = 0; i < 60; ++i) x[i] = a[i * 1024 + threadIdx.x];
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < 60; ++i) for (int j = 0; j < i; ++j) sum += x[i] * x[j];
    out[threadIdx.x] = sum;
}
"""


class CompileError(Exception):
    """NVRTC's words on a text that it does not take."""


def nvrtc(version, text, architecture):
    """PTX of a CUDA text, or an exception with the compiler's words."""
    path = standin.CUDA / str(version) / f"lib/libnvrtc.so.{version}"
    standin.need(path)
    library, program, size = ctypes.CDLL(str(path)), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    option = f"--gpu-architecture=compute_{architecture}".encode()
    status = library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(option))

    def get(what):
        assert library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)) == 0
        buffer = ctypes.create_string_buffer(size.value)
        assert library[f"nvrtcGet{what}"](program, buffer) == 0
        return buffer.value.decode()

    try:
        if status:
            raise CompileError(get("ProgramLog"))
        return get("PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def ptxas(version, ptx, architecture, folder):
    """{kernel: bytes it spills} of the machine code."""
    program = standin.CUDA / str(version) / "bin/ptxas"
    standin.need(program)
    source = folder / "kernels.ptx"
    source.write_text(ptx)
    command = [program, "-v", f"-arch=sm_{architecture}", source, "-o", folder / "kernels.cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    found = re.findall(line, done.stderr, re.DOTALL)
    return {name: int(stores) + int(loads) for name, stores, loads in found}


@pytest.mark.parametrize(
    ("version", "architecture"), [(version, each) for version, all_ in ARCHITECTURES.items() for each in all_]
)
def test_kernels_compile_and_spill_nothing(version, architecture, tmp_path):
    text, names = standin.kernel_text()
    spilled = ptxas(version, nvrtc(version, text, architecture), architecture, tmp_path)
    assert sorted(spilled) == sorted(names)
    assert {name: spills for name, spills in spilled.items() if spills} == {}


@pytest.mark.parametrize("version", ARCHITECTURES)
def test_a_syntax_error_is_an_error(version):
    text, _ = standin.kernel_text()
    broken = text.replace("return", "return return", 1)
    assert broken != text
    with pytest.raises(CompileError, match="expected an expression"):
        nvrtc(version, broken, 80)


@pytest.mark.parametrize("version", ARCHITECTURES)
def test_spills_show(version, tmp_path):
    assert ptxas(version, nvrtc(version, SPILLS, 80), 80, tmp_path)["spills"] > 0


def test_nvrtc_13_refuses_old_gpus():
    with pytest.raises(CompileError):
        nvrtc(13, SPILLS, 70)
