# One libFuzzer executable for all targets of tests/fuzz that are written in C++, with the sources that they reach and no
# others, so that it is built in a minute: what those call beyond is left open by the linker and must not be called.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "waywiser: WAYWISER_FUZZ=ON needs clang: cmake -DCMAKE_CXX_COMPILER=clang++-19")
endif()
set(fuzz_sources ${core_sources})
list(FILTER fuzz_sources INCLUDE REGEX "waywiser/(base|device|topology|path)/[^/]+$|\
policy/(plan|chooser)\\.cpp|measure/(old_names|profile|profile_fields|pair_class)\\.cpp|transport/(peer_channel|memory_message)\\.cpp|\
comm/(data_type|message/(call|wire)|session/(lifeline|lifeline_root|lifeline_tree))\\.cpp|\
comm/bootstrap/(coming|farewell|frame|handshake|introduction|join_frame|joining|launch|rank_tree|meeting_socket|reception|meeting)\\.cpp|\
comm/bootstrap/(root_network|runtime_folder|job_network|kept_listener|status_socket|tcp|unix_socket)\\.cpp|\
device/virtual_gpu/[^/]+$|kernels/[^/]+\\.cpp|offload/(array_head|worker_line|client_kernels|client_memory|functions|gpu_work|kernel_code|no_cuda)\\.cpp|\
offload/(array_staging|data_road|nvrtc|reply|request|worker|worker_driver|worker_memory|worker_copies|worker_streams|without_files)\\.cpp")

file(GLOB target_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp" "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cc")
list(FILTER target_sources EXCLUDE REGEX "_test\\.cpp$")

add_executable(waywiser_fuzz ${fuzz_sources} ${target_sources})
target_include_directories(waywiser_fuzz PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(waywiser_fuzz PRIVATE waywiser_json_headers waywiser_ucx_headers Threads::Threads rt ${CMAKE_DL_LIBS})
set(WAYWISER_FUZZ_OPTIMIZATION -O1 CACHE STRING "How much the compiler optimises the fuzzers")
target_compile_options(waywiser_fuzz PRIVATE -fsanitize=fuzzer-no-link ${WAYWISER_FUZZ_OPTIMIZATION} -Wno-deprecated-declarations)  # in g++ 12's <algorithm>
target_link_options(waywiser_fuzz PRIVATE -fsanitize=fuzzer -no-pie LINKER:--unresolved-symbols=ignore-all,-z,lazy)
waywiser_compile_together(waywiser_fuzz)
