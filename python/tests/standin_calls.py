"""CUDA's calls, as a program in Python makes them on the stand-in: for standin_cases.py."""

import ctypes

import numpy as np


class StatusError(Exception):
    """A call returned a status."""


class Cuda:
    """Calls of the driver and its libraries, each checked."""

    def __init__(self, folder, libraries=("cuda", "nvrtc", "cublas", "cusolver")):
        self.libraries = {name: ctypes.CDLL(f"{folder}/lib{name}.so") for name in libraries}
        self.cu("Init", 0)
        context = ctypes.c_void_p()
        self.cu("DevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.cu("CtxSetCurrent", context)

    def call(self, library, name, *arguments):
        status = self.libraries[library][name](*arguments)
        if status:
            raise StatusError(status)

    def cu(self, name, *arguments):
        self.call("cuda", "cu" + name, *arguments)

    def make(self, bytes_):
        address = ctypes.c_uint64()
        self.cu("MemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(bytes_))
        return address

    def free(self, address):
        self.cu("MemFree_v2", address)

    def upload(self, array):
        address = self.make(array.nbytes)
        self.cu("MemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return address

    def download(self, address, shape, kind=np.float64):
        array = np.zeros(shape, kind, order="F")
        self.cu("MemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))
        return array

    def stream(self):
        stream = ctypes.c_void_p()
        self.cu("StreamCreate", ctypes.byref(stream), 1)
        return stream

    def compile(self, text, *options):
        program = ctypes.c_void_p()
        self.call("nvrtc", "nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"text.cu", 0, None, None)
        options = options or (b"--gpu-architecture=compute_89",)
        list_ = (ctypes.c_char_p * len(options))(*options)
        status = self.libraries["nvrtc"].nvrtcCompileProgram(program, len(options), list_)
        size = ctypes.c_size_t()
        if status:
            self.call("nvrtc", "nvrtcGetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self.call("nvrtc", "nvrtcGetProgramLog", program, log)
            print(log.value.decode())
            raise StatusError(status)
        self.call("nvrtc", "nvrtcGetPTXSize", program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        self.call("nvrtc", "nvrtcGetPTX", program, image)
        self.call("nvrtc", "nvrtcDestroyProgram", ctypes.byref(program))
        module = ctypes.c_void_p()
        self.cu("ModuleLoadData", ctypes.byref(module), image)
        return module

    def kernel(self, module, name):
        function = ctypes.c_void_p()
        self.cu("ModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, grid, arguments, block=256, stream=None):
        slots = (ctypes.c_void_p * (len(arguments) + 1))(*[ctypes.addressof(a) for a in arguments])
        self.cu("LaunchKernel", function, *grid, 1, block, 1, 1, 0, stream, slots, None)

    def wait(self):
        self.cu("CtxSynchronize")
