#!/usr/bin/env bash
# Builds, tests, tunes and times on a machine with GPUs, in one call and without a network.
# usage: scripts/gpu_test.sh [build] [test] [tune] [bench] [peers] [group] [one_sided] [fused] [versus] [halo] [halo_shared] [interop]
# [offload] [proof] [soak]
# (default: the first four)
# WAYWISER_PYTHON: interpreter whose packages are used (default python3); WAYWISER_WHEELS: folder with wheels of missing
# packages (default .whl); its folder "prefix" is searched for headers and GoogleTest; OUT: folder of the results
# (default gpu_results): summary.txt and gpu_results.tar.gz; WAYWISER_BUILD: folder of the programs (default build/gpu; if
# it has those of stage one_sided, that builds nothing); WAYWISER_TEST_PROGRAMS: folder with what tests/python/prebuilt.py
# builds, for stage offload where there is no nvcc. Exit code 1 if a stage failed; the others still run.
set -u
cd "$(dirname "$0")/.."
out=${OUT:-gpu_results}
work=$(mktemp -d)
export WAYWISER_PYTHON=${WAYWISER_PYTHON:-$(command -v python3)} WAYWISER_WHEELS=${WAYWISER_WHEELS:-.whl} WAYWISER_CUDA=ON
# Keeps NVLink multicast off, also in libraries that this project opens.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
stages=${*:-build test tune bench}
build=${WAYWISER_BUILD:-build/gpu}
failed=0
mkdir -p "$out"

# stage NAME SECONDS COMMAND...: its output goes to a log; the last lines and the time to the summary.
stage() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  timeout -k 5 "$limit" "$@" >"$work/$name.log" 2>&1
  status=$?
  [ $status -eq 0 ] || failed=1
  { echo "== $name: exit $status after $((SECONDS - start)) s"; tail -n 12 "$work/$name.log"; } | tee -a "$work/summary.txt"
  save
  return $status
}

# Runs after each stage and each step of a long one, so that results are kept if a later one is cut off.
save() {
  cp "$work/summary.txt" "$out/"
  tar -C "$work" --warning=no-file-changed -czf "$out/next.tar.gz" . || [ $? -eq 1 ] || return 0
  mv "$out/next.tar.gz" "$out/gpu_results.tar.gz"
}

# Only the C++ parts, as fast as the machine can: the package is built by scripts/setup. Arguments: targets.
build_programs() {
  local prefix="$WAYWISER_WHEELS/prefix"
  [ $# -gt 0 ] || set -- waywiser_tests waywiser_benchmarks
  [ ! -d "$prefix" ] || export CMAKE_PREFIX_PATH="$PWD/$prefix" GTest_DIR="$PWD/$prefix/lib/x86_64-linux-gnu/cmake/GTest"
  cmake -S . -B "$build" -G Ninja -DWAYWISER_CUDA=ON -DWAYWISER_TESTS=ON -DWAYWISER_PYTHON=OFF \
    -DPython_EXECUTABLE="$WAYWISER_PYTHON" -DCMAKE_CUDA_ARCHITECTURES="${WAYWISER_ARCHITECTURES:-native}" &&
    cmake --build "$build" --parallel --target "$@"
}

tune() {
  .venv/bin/waywiser tune --json --results "$work/tune" >"$work/tune.json"
}

# The group on all GPUs in turns with NCCL, PyTorch, its symmetric memory, NVSHMEM and UCX, of which each turn starts two
# processes.
peers() {
  local gpus all=nccl,torch,torch-symmetric,nvshmem
  gpus=$(nvidia-smi --list-gpus | wc -l)
  .venv/bin/waywiser bench latency bandwidth --memory gpu --mode blocking,stream,graph -n "$gpus" \
    --sizes 8,64K,1M,16M --against $all,ucx --budget 50 --json >"$work/peers-messages.json"
  save
  .venv/bin/waywiser bench all_reduce all_gather all_to_all bidirectional --memory gpu --mode stream,graph -n "$gpus" \
    --sizes 8,8K,64K,256K,1M,4M,16M --against $all --budget 80 --json >"$work/peers-collectives.json"
  save
  .venv/bin/waywiser bench all_reduce bidirectional --memory 'gpu>exposed' --mode graph -n "$gpus" \
    --sizes 64K,256K,1M,4M,16M,64M --against $all --budget 25 --json >"$work/peers-exposed.json"
}

# NCCL and UCX of the interpreter's packages; else UCX of the wheels, since the system's may lack CUDA.
find_libraries() {
  local libraries wheel
  libraries=$("$WAYWISER_PYTHON" -c 'import site, sysconfig
for folder in {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}: print(folder)')
  for wheel in "$WAYWISER_WHEELS"/libucx_cu*.whl; do
    [ ! -e "$wheel" ] || "$WAYWISER_PYTHON" -m zipfile -e "$wheel" "$PWD/$build/wheels"
  done
  for folder in $libraries "$PWD/$build/wheels"; do
    [ ! -e "$folder/nvidia/nccl/lib/libnccl.so.2" ] || export WAYWISER_LIBNCCL="$folder/nvidia/nccl/lib/libnccl.so.2"
    [ ! -e "$folder/libucx/lib/libucp.so.0" ] || export WAYWISER_LIBUCP="${WAYWISER_LIBUCP:-$folder/libucx/lib/libucp.so.0}"
  done
}

# With UCX also the paths between machines, over the loopback device. Tests that fork with a group on GPUs run first: no
# test before them may have started CUDA.
tests() {
  local wanted=${WAYWISER_TEST_FILTER:-*} status=0 halves="scripts/in_shards 2 $work/tests.log"
  [ "$wanted" = '*' ] || halves= # one half may have no test
  find_libraries
  "$build/waywiser_tests" --gtest_brief=1 --gtest_filter='*OnCudaGpus*' || status=1
  $halves "$build/waywiser_tests" --gtest_brief=1 --gtest_filter="$wanted:-*OnCudaGpus*" || status=1
  return $status
}

# A process for each GPU, four at most.
group() {
  find_libraries
  "$build/benchmarks/group_gpu_benchmark" "$(nvidia-smi -L | head -n 4 | wc -l)" >"$work/group_gpu_benchmark.json"
}

# of_two PROGRAM: two ranks, without the launcher.
of_two() {
  local rank status=0 job=example-$$-$RANDOM
  for rank in 0 1; do
    WAYWISER_JOB=$job WAYWISER_SIZE=2 WAYWISER_LOCAL_SIZE=2 WAYWISER_RANK=$rank timeout -k 5 60 "$build/examples/$1" &
  done
  wait -n || status=1
  wait -n || status=1
  return $status
}

# Communication inside kernels of two GPUs: tests, examples, programs in NVSHMEM's names, other languages, benchmark.
one_sided() {
  local status=0 program
  find_libraries
  "$build/waywiser_tests" --gtest_brief=1 --gtest_filter='HeapOnCudaGpus.*' || status=1
  for program in $one_sided_examples; do of_two "$program" || status=1; done
  if [ -x .venv/bin/waywiser ]; then
    .venv/bin/python -m pytest -q -rs tests/python/nvrtc_test.py tests/python/heap_test.py tests/python/languages_test.py ||
      status=1
    .venv/bin/waywiser bench put get put_message signal atomics barrier --from kernel --sizes 8,8K,64K,1M,64M --budget 30 \
      --against nvshmem || status=1
  fi
  "$build/benchmarks/one_sided_benchmark" >"$work/one_sided_benchmark.json" || status=1
  if [ -x "$build/apps/moe_dispatch_cuda" ]; then
    ranks 2 moe_dispatch_cuda --format json || status=1
    for blocks in 48 80 96; do
      ranks 2 moe_dispatch_cuda --way one_sided --blocks $blocks --format json || status=1
    done
  fi
  return $status
}

# Steps that are one kernel, beside the other ways; also of few cells a GPU.
fused() {
  local status=0 json=(--fused yes --format json --rounds 3)
  find_libraries
  ranks 2 jacobi_cuda --size 2048x2048 --steps 1000 "${json[@]}" || status=1
  ranks 2 jacobi_cuda --size 512x512 --steps 1000 "${json[@]}" || status=1
  ranks 2 jacobi_cuda --size 16384x16384 --steps 100 "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 32x32x32x64 --type float32 --steps 20 "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 64x32x32x32 --type float32 --steps 20 "${json[@]}" || status=1 # cut in the first dimension
  ranks 2 wilson_dslash_cuda --size 32x16x16x16 --type float32 --steps 100 "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 16x8x8x8 --type float32 --steps 200 "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 32x16x16x16 --type float64 --steps 100 "${json[@]}" || status=1
  ranks 2 conjugate_gradient_cuda --size 256 --fused only --format json --rounds 2 || status=1
  ranks 2 conjugate_gradient_cuda --size 256 --way automatic --format json --rounds 2 || status=1
  ranks 2 conjugate_gradient_cuda --size 64 "${json[@]}" || status=1
  ranks 2 convolution_cuda "${json[@]}" || status=1
  return $status
}

# Fused steps beside `direct` and the same kernels with NVSHMEM's calls, then faces beside NCCL and NVSHMEM with kernels
# that pack. Where the build has not found NVSHMEM, without it. About 90 s.
versus() {
  local status=0 with=nvshmem json=(--fused yes --way direct --format json --rounds 5)
  find_libraries
  if [ ! -x "$build/apps/jacobi_nvshmem" ]; then
    with=cuda
    echo "no rows of NVSHMEM: $(grep -h 'no NVSHMEM' "$work/versus-build.log" || echo the programs were built without it)"
  fi
  ranks 2 jacobi_$with --size 512x512 --steps 1000 "${json[@]}" || status=1
  ranks 2 jacobi_$with --size 2048x2048 --steps 1000 "${json[@]}" || status=1
  ranks 2 jacobi_$with --size 16384x16384 --steps 100 "${json[@]}" || status=1
  ranks 2 conjugate_gradient_$with --size 64 --version optimised "${json[@]}" || status=1
  ranks 2 conjugate_gradient_$with --size 256 --version optimised "${json[@]}" || status=1
  ranks 2 convolution_$with "${json[@]}" --steps 50 || status=1
  ranks 2 wilson_dslash_$with --size 32x16x16x16 --type float32 --steps 100 "${json[@]}" || status=1
  ranks 2 wilson_dslash_$with --size 64x32x32x32 --type float32 --steps 20 "${json[@]}" || status=1
  [ $with = cuda ] && with= || with=_$with
  timeout -k 5 90 "$build/benchmarks/halo_gpu_benchmark$with" faces >"$work/halo_faces.json" 2>"$work/halo_faces.txt" || status=1
  cat "$work/halo_faces.txt"
  grep '^{"title' "$work/halo.jsonl"
  grep ' takes ' "$work/halo_faces.txt"
  return $status
}

# ranks NUMBER PROGRAM ARGUMENT...: a process for each rank, which has a minute. What rank 0 prints as JSON goes to
# halo.jsonl, behind a line that says what ran.
ranks() {
  local count=$1 status=0 start=$SECONDS ids=() id rank job=$$-$RANDOM words="${*:2}"
  shift
  for ((rank = 0; rank < count; ++rank)); do
    WAYWISER_RANK=$rank WAYWISER_SIZE=$count WAYWISER_JOB=$job timeout -k 5 60 "$build/apps/$1" "${@:2}" \
      >"$work/halo-rank-$rank.txt" &
    ids+=($!)
  done
  for id in "${ids[@]}"; do wait "$id" || status=1; done
  echo "$count GPUs: $words: $([ $status -eq 0 ] && echo right || echo FAILED) after $((SECONDS - start)) s"
  printf '{"run": "%s", "gpus": %d, "failed": %d}\n' "$words" "$count" $status >>"$work/halo.jsonl"
  case $words in
    *"format json"*) grep '^{' "$work/halo-rank-0.txt" ;;
    *) tr -d '\n' <"$work/halo-rank-0.txt" | grep '^{' ;; # one object of many lines
  esac >>"$work/halo.jsonl"
  save
  return $status
}

# Halo exchanges on two GPUs, then the programs of apps/, also on one GPU.
halo() {
  local status=0 json=(--format json --rounds 3)
  find_libraries
  timeout -k 5 130 "$build/benchmarks/halo_gpu_benchmark" >"$work/halo_gpu_benchmark.json" || status=1
  save
  for algorithm in 'LL(blocks=64)' 'LL(piece=2K,blocks=64)' 'bulk(blocks=64)' 'bulk(piece=8K,blocks=64)' 'direct(blocks=16)' \
    'direct(blocks=64)' 'direct(piece=32K,blocks=64)'; do
    timeout -k 5 30 "$build/benchmarks/halo_gpu_benchmark" "$algorithm" | tr -d '\n' >>"$work/halo-algorithms.jsonl"
    [ "${PIPESTATUS[0]}" -eq 0 ] || status=1
    echo >>"$work/halo-algorithms.jsonl"
  done
  save
  ranks 2 jacobi_cuda --size 16384x16384 --steps 100 --fused yes "${json[@]}" || status=1
  ranks 2 jacobi_cuda --size 2048x2048 --steps 1000 --fused yes "${json[@]}" || status=1
  ranks 1 jacobi_cuda --size 16384x16384 --steps 100 --way automatic "${json[@]}" || status=1
  ranks 1 jacobi_cuda --size 2048x2048 --steps 1000 --way automatic "${json[@]}" || status=1
  ranks 2 conjugate_gradient_cuda --size 256 --fused yes --format json --rounds 2 || status=1
  ranks 1 conjugate_gradient_cuda --size 256 --way automatic --format json --rounds 2 || status=1
  ranks 2 wilson_dslash_cuda --size 32x32x32x64 --type float32 --steps 10 --fused yes "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 32x32x32x64 --type float64 --steps 10 --fused yes "${json[@]}" || status=1
  ranks 1 wilson_dslash_cuda --size 32x32x32x64 --type float32 --steps 10 --way automatic "${json[@]}" || status=1
  ranks 2 wilson_dslash_cuda --size 64x64x64x128 --type float32 --steps 10 --way automatic --format json --rounds 1 || status=1
  ranks 2 convolution_cuda --fused yes "${json[@]}" || status=1
  ranks 1 convolution_cuda --way automatic "${json[@]}" || status=1
  for exchange in whole_field auto; do
    ranks 2 navier_stokes_cuda --case cavity --cells 500000 --steps 20 --exchange $exchange || status=1
  done
  return $status
}

# The choice among variants where processes share two GPUs, and with peer access off, which is this project's own switch:
# 40 shapes that nothing was tuned on, once without MPS and once with it, if it starts. Every exchange is verified. About
# four minutes. A program that fails leaves MPS of no use for the next one, so it is started again.
halo_shared() {
  local status=0 processes peer_access mps=without
  find_libraries
  settings() {
    for processes in 1 2 4; do
      for peer_access in on off; do
        echo "$mps MPS, $processes processes a GPU, peer access $peer_access" >&2
        timeout -k 5 60 "$build/benchmarks/halo_gpu_benchmark" shared $processes $peer_access | tr -d '\n' >>"$work/halo_shared.jsonl"
        if [ "${PIPESTATUS[0]}" -ne 0 ]; then
          status=1
          [ $mps = without ] || { stop_mps; start_mps; }
        fi
        echo >>"$work/halo_shared.jsonl"
        save
      done
    done
  }
  start_mps() { timeout 20 nvidia-cuda-mps-control -d; }
  stop_mps() {
    echo quit | timeout 20 nvidia-cuda-mps-control || true
    sleep 1 # its server ends a little later
  }
  settings
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
  mkdir -p "$work/mps"
  if command -v nvidia-cuda-mps-control >/dev/null && start_mps; then
    mps=with
    settings
    stop_mps
  else
    echo "no table with MPS: $(command -v nvidia-cuda-mps-control || echo nvidia-cuda-mps-control is not installed) did not start"
  fi
  rm -rf "$work/mps"
  "$WAYWISER_PYTHON" benchmarks/halo_choices.py "$work/halo_shared.jsonl" || status=1
  return $status
}

# PyTorch and CuPy in groups, a process for each GPU, four at most; before that the tests that need these packages, less
# those of programs in C++, which are not built here.
interop() {
  local status=0
  .venv/bin/python -m pytest -q tests/python/group_arrays_test.py tests/python/tensors_test.py tests/python/group_joining_test.py \
    tests/python/torch_backend_test.py tests/python/torch_init_test.py tests/python/examples_test.py -k "not choose_and_copy and not one_sided" || status=1
  PYTHONPATH=python .venv/bin/python tests/python/torch_calls_test.py "$work/torch_calls_gpu.json" || status=1
  PYTHONPATH=python .venv/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 benchmarks/torch_calls.py \
    --json "$work/torch_calls.json" || status=1
  PYTHONPATH=python .venv/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 benchmarks/torch_startup.py \
    >"$work/torch_startup.json" || status=1
  cut -c1-400 "$work/torch_startup.json"
  WAYWISER_TORCH_FORM=cpp .venv/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 tests/python/gpu_interop.py || status=1
  WAYWISER_TORCH_FORM=python .venv/bin/python -m torch.distributed.run --standalone \
    --nproc-per-node "$(nvidia-smi -L | head -n 4 | wc -l)" tests/python/gpu_interop.py "$work/interop.json" && return $status
}

# One program of the CUDA driver API, with the GPU of this machine and, by `waywiser remote`, with the same one elsewhere.
driver_program() {
  local folder=$work/driver address status=0 program
  mkdir -p "$folder"
  [ -n "${WAYWISER_TEST_PROGRAMS:-}" ] || .venv/bin/python tests/python/prebuilt.py "$folder" || return 1
  program=${WAYWISER_TEST_PROGRAMS:-$folder}/driver_program
  "$program" kernel || { echo "driver program on this GPU: FAILED"; status=1; }
  .venv/bin/waywiser serve --listen 127.0.0.1:0 --memory 2G --new-key --key "$folder/key" --json >"$folder/log" &
  for _ in $(seq 100); do
    address=$(sed -n 's/.*"listening", "address": "\([^"]*\)".*/\1/p' "$folder/log")
    [ -z "$address" ] || break
    sleep 0.2
  done
  timeout 60 .venv/bin/waywiser remote "$address" --key "$folder/key" -- "$program" kernel ||
    { echo "driver program on a remote GPU: FAILED"; status=1; }
  kill $!
  wait $!
  return $status
}

# A server and a client on this machine: kernels of the client, programs of the driver API, and all roads beside a local
# GPU.
offload() {
  local status=0
  .venv/bin/python -m pytest -q -rs tests/python/remote_kernels_test.py tests/python/remote_memory_test.py \
    tests/python/shim_test.py || status=1
  .venv/bin/python benchmarks/remote_memory.py >"$work/remote_memory.json" || status=1
  tail -n 11 "$work/remote_memory.json"
  .venv/bin/python benchmarks/remote_calls.py "$build/benchmarks/remote_calls_benchmark" >"$work/remote_calls.json" || status=1
  tail -n 32 "$work/remote_calls.json"
  driver_program || status=1
  .venv/bin/waywiser bench offload --times 1,100 --budget 90 --json >"$work/offload.json" || status=1
  return $status
}

# Runs doctor, apply and verify with the profile of stage tune in this call, else of a quick one.
# WAYWISER_PROOF: the libraries. Tables, evidence and settings are kept in the folder "proof" of gpu_results.tar.gz.
# Four minutes and more.
proof() {
  local gpus status=0 results=$work/tune to=$work/proof ww=$PWD/.venv/bin/waywiser
  gpus=$(nvidia-smi -L | head -n 4 | wc -l)
  mkdir -p "$to"
  # told NAME SECONDS ARGUMENT...: the verb's output goes to NAME.txt, its messages to NAME.log.
  told() {
    local name=$1 limit=$2 code
    shift 2
    COLUMNS=120 timeout -s INT -k 10 "$limit" "$ww" "$@" >"$to/$name.txt" 2>"$to/$name.log"
    code=$?
    echo "$name: exit $code $([ $code -eq 0 ] || tail -n 1 "$to/$name.log")"
    save
    return $code
  }
  [ -f "$results/profile.json" ] || told tune 150 tune --quick --budget 60 --results "$results" || return 1
  told watch 60 run -n "$gpus" --require nvlink --watch --results "$results" "$ww" bench all_reduce --memory gpu \
    --sizes 1M,64M --budget 4 || status=1
  # The exit code of doctor is its verdict.
  told doctor 60 doctor --all --results "$results"
  told doctor-json 60 doctor --json --results "$results"
  told doctor-job 60 run -n "$gpus" --plain "$ww" doctor
  UCX_TLS=tcp NCCL_P2P_DISABEL=1 told doctor-bad 60 doctor --only D34
  told apply 60 apply --results "$results" || status=1
  told env 30 env --results "$results" || status=1
  cp -r "$results/settings" "$to/settings-before"
  for library in ${WAYWISER_PROOF:-nccl ucx openmpi}; do
    case $library in
      nccl) told verify-nccl 220 verify --with nccl -n "$gpus" --quick --rounds 4 --results "$results" \
        --try "NCCL_MIN_P2P_NCHANNELS=32 NCCL_MIN_CTAS=32" || status=1 ;;
      ucx) told verify-ucx 340 verify --with ucx --quick --rounds 4 --results "$results" || status=1 ;;
      openmpi) told verify-openmpi 120 verify --with openmpi --quick --rounds 4 --results "$results" ;; # may lack mpirun
    esac
  done
  told env-proved 30 env --results "$results" || status=1
  cp -r "$results/settings" "$results/evidence" "$to/"
  return $status
}

export -f save build_programs find_libraries tests tune peers group of_two one_sided fused versus ranks halo halo_shared interop driver_program offload proof
one_sided_examples=' 11_one_sided_cuda 12_languages_cuda ring_shift ping_pong stencil'
export work build out one_sided_examples

nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,temperature.gpu,power.draw --format=csv 2>&1 | tee "$work/summary.txt"
for name in $stages; do
  case $name in
    build) stage build 300 bash -c build_programs ;;
    test) stage test 300 bash -c tests ;;
    tune)
      stage setup 240 scripts/setup --offline && stage pytest 180 .venv/bin/python -m pytest -q tests/python -k "gpu or cuda"
      stage tune 600 bash -c tune ;;
    interop)
      stage setup 240 scripts/setup --offline && stage interop 230 bash -c interop ;;
    offload)
      [ -x "$build/benchmarks/remote_calls_benchmark" ] || stage offload-build 200 bash -c "build_programs remote_calls_benchmark"
      stage setup 240 scripts/setup --offline && stage offload 400 bash -c offload ;;
    bench)
      stage bench 240 bash -c "'$build/benchmarks/gpu_benchmark' >'$work/gpu_benchmark.json'"
      stage courier 60 bash -c "'$build/benchmarks/courier_benchmark' >'$work/courier_benchmark.json'" ;;
    group)
      stage group 170 bash -c group
      [ ! -f "$work/group_gpu_benchmark.json" ] || cp "$work/group_gpu_benchmark.json" "$out/" ;;
    one_sided)
      [ -x "$build/benchmarks/one_sided_benchmark" ] && [ -x "$build/examples/stencil" ] &&
        [ -x "$build/waywiser_tests" ] ||
        stage one_sided_build 400 bash -c "build_programs waywiser_tests ${one_sided_examples// / example_} one_sided_benchmark moe_dispatch_cuda"
      stage one_sided 300 bash -c one_sided
      for file in one_sided_benchmark.json halo.jsonl; do [ ! -f "$work/$file" ] || cp "$work/$file" "$out/"; done ;;
    fused)
      stage fused-build 300 bash -c "build_programs jacobi_cuda wilson_dslash_cuda conjugate_gradient_cuda convolution_cuda" &&
        stage fused 400 bash -c fused
      [ ! -f "$work/halo.jsonl" ] || cp "$work/halo.jsonl" "$out/fused.jsonl" ;;
    versus)
      stage versus-build 300 bash -c "build_programs waywiser_versus" && stage versus 300 bash -c versus
      [ ! -f "$work/halo.jsonl" ] || cp "$work/halo.jsonl" "$out/versus.jsonl"
      [ ! -f "$work/halo_faces.json" ] || cp "$work/halo_faces.json" "$out/" ;;
    halo)
      stage halo-build 300 bash -c "build_programs halo_gpu_benchmark waywiser_cuda_apps" && stage halo 560 bash -c halo
      for file in halo.jsonl halo_gpu_benchmark.json; do [ ! -f "$work/$file" ] || cp "$work/$file" "$out/"; done ;;
    halo_shared)
      [ -x "$build/benchmarks/halo_gpu_benchmark" ] ||
        stage halo-build 300 bash -c "build_programs halo_gpu_benchmark"
      stage halo_shared 420 bash -c halo_shared
      [ ! -f "$work/halo_shared.jsonl" ] || cp "$work/halo_shared.jsonl" "$out/" ;;
    proof)
      stage setup 240 scripts/setup --offline && stage proof 580 bash -c proof ;;
    peers)
      stage setup 240 scripts/setup --offline
      stage peers 420 bash -c peers ;;
    soak)
      stage setup 240 scripts/setup --offline
      stage soak $((${SOAK_SECONDS:-480} + 100)) .venv/bin/python scripts/soak --gpus --seconds "${SOAK_SECONDS:-480}" ;;
    *) echo "gpu_test.sh: no stage '$name': build, test, tune, bench, peers, group, one_sided, fused, versus, halo, halo_shared, interop, offload, proof, soak" >&2; exit 2 ;;
  esac
done
exit $failed
