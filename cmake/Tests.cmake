# One GoogleTest executable for all of tests/, and one executable for each file of benchmarks/.
find_package(GTest REQUIRED)

waywiser_sources(tests test_sources)
list(FILTER test_sources EXCLUDE REGEX "/tests/(explorer|consumers)/")  # programs of their own
add_executable(waywiser_tests ${test_sources})
target_include_directories(waywiser_tests PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(waywiser_tests PRIVATE waywiser_core waywiser_warnings GTest::gtest GTest::gtest_main)
# Quicker to build; the core has its own. A sanitizer's reports name lines.
set(test_options -O1 $<IF:$<BOOL:${WAYWISER_SANITIZE}>,-g1,-g0>)
target_compile_options(waywiser_tests PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${test_options}>")
if(WAYWISER_WITH_CUDA AND WAYWISER_UNITY AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # It makes every call in every scope, for which ptxas takes minutes. GPUs run it optimised: scripts/gpu_test.sh builds
  # without WAYWISER_UNITY.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/heap/cuda/device_calls_on_gpus_test.cu" PROPERTIES
                              COMPILE_OPTIONS -Ofc=max)
endif()
target_compile_definitions(waywiser_tests PRIVATE WAYWISER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
waywiser_compile_together(waywiser_tests <gtest/gtest.h>)
waywiser_python_package(libucx libucx_folder)
target_compile_definitions(waywiser_tests PRIVATE WAYWISER_TEST_LIBUCP="${libucx_folder}/lib/libucp.so.0")
if(TARGET waywiser-peer)
  add_dependencies(waywiser_tests waywiser-peer)
  target_compile_definitions(waywiser_tests PRIVATE WAYWISER_PEER_PATH="$<TARGET_FILE:waywiser-peer>")
endif()

# Stands for GDRCopy's library; .cc, so that it is no source of the test program.
add_library(fake_gdrapi MODULE "${PROJECT_SOURCE_DIR}/tests/transport/bar_copy/fake_gdrapi.cc")
set_target_properties(fake_gdrapi PROPERTIES CXX_VISIBILITY_PRESET default)
add_dependencies(waywiser_tests fake_gdrapi)
target_compile_definitions(waywiser_tests PRIVATE WAYWISER_FAKE_GDRAPI="$<TARGET_FILE:fake_gdrapi>")

# Stands for NVIDIA's cuFile; .cc for the same reason.
add_library(fake_cufile MODULE "${PROJECT_SOURCE_DIR}/tests/storage/fake_cufile.cc")
set_target_properties(fake_cufile PROPERTIES CXX_VISIBILITY_PRESET default)
add_dependencies(waywiser_tests fake_cufile)
target_compile_definitions(waywiser_tests PRIVATE WAYWISER_FAKE_CUFILE="$<TARGET_FILE:fake_cufile>")

# Stands for NVIDIA's compiler at run time; .cc for the same reason.
add_library(fake_nvrtc MODULE "${PROJECT_SOURCE_DIR}/tests/offload/fake_nvrtc.cc")
set_target_properties(fake_nvrtc PROPERTIES CXX_VISIBILITY_PRESET default)
add_dependencies(waywiser_tests fake_nvrtc)
target_compile_definitions(waywiser_tests PRIVATE WAYWISER_FAKE_NVRTC="$<TARGET_FILE:fake_nvrtc>")

# Stands for a profiler's library; .cc for the same reason.
add_library(fake_nvtx MODULE "${PROJECT_SOURCE_DIR}/tests/base/fake_nvtx.cc")
set_target_properties(fake_nvtx PROPERTIES CXX_VISIBILITY_PRESET default)
add_dependencies(waywiser_tests fake_nvtx)

# A rank for tests of the launcher; .cc for the same reason.
add_executable(returns_a_code "${PROJECT_SOURCE_DIR}/tests/comm/returns_a_code.cc")
target_link_libraries(returns_a_code PRIVATE waywiser_core waywiser_warnings)
add_dependencies(waywiser_tests returns_a_code)

# What `make test-slow` needs besides.
add_custom_target(waywiser_slow_tests)

# It stands where a sanitizer's library would, and knows what g++ calls there.
if(WAYWISER_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(STATUS "waywiser: no explorer of schedules: it is built by g++ without a sanitizer")
else()
  include(Explorer)
endif()

include(Nvshmem)
waywiser_sources(benchmarks benchmark_sources)
set(nvshmem_kernels "${PROJECT_SOURCE_DIR}/benchmarks/cuda/halo_nvshmem.cu")
list(REMOVE_ITEM benchmark_sources "${nvshmem_kernels}")
set(benchmark_kernels ${benchmark_sources})  # NAME.cu belongs to NAME.cpp, if there is one
list(FILTER benchmark_kernels INCLUDE REGEX "\\.cu$")
foreach(file IN LISTS benchmark_kernels)
  string(REGEX REPLACE "\\.cu$" ".cpp" program "${file}")
  if("${program}" IN_LIST benchmark_sources)
    list(REMOVE_ITEM benchmark_sources "${file}")
  else()
    list(REMOVE_ITEM benchmark_kernels "${file}")
  endif()
endforeach()
function(waywiser_benchmark name)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE WAYWISER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE waywiser_core waywiser_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmarks")
endfunction()

add_custom_target(waywiser_benchmarks)
foreach(file IN LISTS benchmark_sources)
  get_filename_component(name "${file}" NAME_WE)
  set(kernels ${benchmark_kernels})
  list(FILTER kernels INCLUDE REGEX "/${name}\\.cu$")
  waywiser_benchmark(${name} "${file}" ${kernels})
  add_dependencies(waywiser_benchmarks ${name})
endforeach()
add_custom_target(waywiser_versus)  # programs beside the same with NVSHMEM; without that where it is not found
set_target_properties(nccl_tuner_benchmark PROPERTIES ENABLE_EXPORTS ON)  # it stands for NCCL
add_dependencies(nccl_tuner_benchmark waywiser_nccl_tuner)
if(WAYWISER_WITH_NVSHMEM)  # halo_gpu_benchmark, with NVSHMEM as one more way
  set(halo_benchmark "${PROJECT_SOURCE_DIR}/benchmarks/cuda/halo_gpu_benchmark")
  waywiser_benchmark(halo_gpu_benchmark_nvshmem "${halo_benchmark}.cpp" "${halo_benchmark}.cu" "${nvshmem_kernels}")
  target_compile_definitions(halo_gpu_benchmark_nvshmem PRIVATE WAYWISER_NVSHMEM)
  waywiser_nvshmem_program(halo_gpu_benchmark_nvshmem)
  add_dependencies(waywiser_versus halo_gpu_benchmark_nvshmem)
  waywiser_benchmark(device_calls_nvshmem "${PROJECT_SOURCE_DIR}/benchmarks/cuda/device_calls.cu")
  target_compile_definitions(device_calls_nvshmem PRIVATE BESIDE_NVSHMEM)
  waywiser_nvshmem_program(device_calls_nvshmem)
  add_dependencies(waywiser_versus device_calls device_calls_nvshmem)
elseif(TARGET halo_gpu_benchmark)
  add_dependencies(waywiser_versus halo_gpu_benchmark)
endif()

waywiser_sources(examples example_sources)
foreach(file IN LISTS example_sources)
  get_filename_component(name "${file}" NAME_WE)
  add_executable(example_${name} "${file}")
  target_link_libraries(example_${name} PRIVATE waywiser_core waywiser_warnings)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY
                                                                           "${PROJECT_BINARY_DIR}/examples")
  add_dependencies(waywiser_tests example_${name})
endforeach()

if(NOT WAYWISER_SANITIZE AND NOT WAYWISER_CORE_ONLY)
  include(Apps)
  add_dependencies(waywiser_slow_tests waywiser_apps)
endif()
