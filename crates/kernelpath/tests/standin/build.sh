#!/bin/sh
# Builds the stand-in, if something is newer: build.sh OUT_DIR HEADERS_DIR
# HEADERS_DIR has NVIDIA's cuda.h, nvrtc.h, cublas_v2.h and cusolverDn.h (fetch.py takes them from PyPI). A program finds
# the libraries by LD_LIBRARY_PATH=OUT_DIR.
set -eu
[ $# -eq 2 ] || { echo "usage: build.sh OUT_DIR HEADERS_DIR" >&2; exit 2; }
mkdir -p "$1/include"
out=$(cd "$1" && pwd)
headers=$(cd "$2" && pwd)
cd "$(dirname "$0")"

# One build at a time; whoever waited finds it done.
exec 9>"$out/.lock"
flock 9
if [ -e "$out/.built" ] && [ -z "$(find . "$headers/cuda.h" -type f -newer "$out/.built" ! -name '*.py' ! -name '*.md')" ]; then
    exit 0
fi

build() { # NAME FILES AND FLAGS
    name=$1
    shift
    g++ -std=c++17 -O1 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wno-unused-function -Werror -isystem "$headers" \
        "$@" -o "$out/$name.part" -L"$out" -Wl,-rpath,'$ORIGIN' -Wl,-soname,"$name" -ldl
    mv "$out/$name.part" "$out/$name"
}
link() { # FILE NAMES
    file=$1
    shift
    for name; do ln -sf "$file" "$out/$name"; done
}
cp abi.hpp text.hpp "$out/include/"
build libstandin.so report.cpp memory.cpp queue.cpp context.cpp
# Sums of products may be taken in any order, as cuBLAS does.
fast="-O3 -fassociative-math -fno-signed-zeros -fno-trapping-math"
build libcuda.so.1 driver.cpp launch.cpp fibres.cpp -lstandin & cuda=$!
build libnvrtc.so.standin nvrtc.cpp -lstandin & nvrtc=$!
build libcublas.so.standin $fast cublas.cpp -lstandin & cublas=$!
build libcusolver.so.standin $fast cusolver.cpp -lstandin & cusolver=$!
for job in $cuda $nvrtc $cublas $cusolver; do wait "$job"; done
link libcuda.so.1 libcuda.so
link libnvrtc.so.standin libnvrtc.so libnvrtc.so.12 libnvrtc.so.13
link libcublas.so.standin libcublas.so libcublas.so.12 libcublas.so.13
link libcusolver.so.standin libcusolver.so libcusolver.so.11 libcusolver.so.12
touch "$out/.built"
