# Every target. Sources are found by their place; the build with or without CUDA is chosen by file name.
add_library(waywiser_warnings INTERFACE)
target_compile_options(
  waywiser_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow;-Werror=return-type>
                              $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>  # gcc 12: false alarms in std::string
                              $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)

# Appends to `result` the C++ and CUDA sources below `folder` that this build compiles.
function(waywiser_sources folder result)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp" "${PROJECT_SOURCE_DIR}/${folder}/*.cu")
  if(WAYWISER_WITH_CUDA)
    list(FILTER files EXCLUDE REGEX "/no_cuda\\.cpp$")
  else()
    list(FILTER files EXCLUDE REGEX "/cuda/[^/]+$|\\.cu$")
  endif()
  if(WAYWISER_CORE_ONLY)
    list(FILTER files EXCLUDE REGEX "(src/waywiser|tests)/(sim|bench)/|tests/measure/")
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# With WAYWISER_UNITY the C++ files of one room are compiled two dozen at a time, so that a header is read, and a template
# made, once for all of them, and the headers of other libraries once for the whole target; the rest of the arguments are more
# of those. Apart stay the folders of transport/, in which each mechanism has functions of the same names, and those named
# cuda, which the driver's stand-in below replaces.
function(waywiser_compile_together target)
  get_target_property(files ${target} SOURCES)
  list(FILTER files INCLUDE REGEX "\\.cpp$")
  foreach(file IN LISTS files)
    file(RELATIVE_PATH room "${PROJECT_SOURCE_DIR}" "${file}")  # wherever the clone lies: a compiler cache serves all
    get_filename_component(room "${room}" DIRECTORY)
    if(NOT room MATCHES "^src/waywiser/transport/|/cuda$")
      string(REGEX REPLACE "^((src/)?[^/]+/[^/]+)(/.*)?$" "\\1" room "${room}")
    endif()
    string(MAKE_C_IDENTIFIER "${room}" room)
    list(APPEND rooms ${room})
    list(APPEND files_of_${room} "${file}")
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(LENGTH files_of_${room} count)
    math(EXPR units "(${count} + 23) / 24")
    set(number 0)
    foreach(file IN LISTS files_of_${room})
      math(EXPR unit "${number} * ${units} / ${count}")
      math(EXPR number "${number} + 1")
      set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${room}_${unit}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WAYWISER_UNITY} UNITY_BUILD_MODE GROUP)
  if(WAYWISER_UNITY AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # as in the lint
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <map> <memory>
      <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector> <nlohmann/json.hpp> ${ARGN})
  endif()
endfunction()

if(WAYWISER_UNITY AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # clang-tidy does not know it
  # g++ would collect garbage after each 128 MiB, which takes 7 % of its time.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
endif()
if(WAYWISER_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
endif()
if(WAYWISER_SANITIZE STREQUAL "address")
  # A null pointer is seen by the other sanitizer, and these three are looked for at every member.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(WAYWISER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(WAYWISER_SANITIZE)
  message(FATAL_ERROR "waywiser: WAYWISER_SANITIZE is address or thread, not '${WAYWISER_SANITIZE}'")
endif()

waywiser_sources(src/waywiser core_sources)
set(peer_main "${PROJECT_SOURCE_DIR}/src/waywiser/measure/peer_main.cpp")
set(rank_main "${PROJECT_SOURCE_DIR}/src/waywiser/bench/rank_main.cpp")
list(REMOVE_ITEM core_sources "${peer_main}" "${rank_main}")
add_library(waywiser_core STATIC ${core_sources})
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/waywiser/base/version.cpp" PROPERTIES COMPILE_DEFINITIONS
                            WAYWISER_VERSION="${PROJECT_VERSION}")
waywiser_python_package(libucx libucx_of_python)  # which Python programs take, so programs in other languages do
if(SKBUILD)  # a wheel finds the one that is beside it
  set(libucx_of_python "")
endif()
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/waywiser/transport/ucx/libucp_choice.cpp" PROPERTIES
                            COMPILE_DEFINITIONS WAYWISER_LIBUCX_OF_PYTHON="${libucx_of_python}")
target_compile_options(waywiser_core PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)  # of complex numbers a * b is b * a
target_include_directories(waywiser_core PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>")
target_link_libraries(waywiser_core PUBLIC $<BUILD_LOCAL_INTERFACE:waywiser_json_headers>
                                           $<BUILD_LOCAL_INTERFACE:waywiser_ucx_headers>
                                           $<BUILD_LOCAL_INTERFACE:Threads::Threads> $<INSTALL_INTERFACE:pthread> rt
                                           ${CMAKE_DL_LIBS}
                                    PRIVATE $<BUILD_LOCAL_INTERFACE:waywiser_warnings>)
if(WAYWISER_WITH_CUDA)
  target_include_directories(waywiser_core SYSTEM PUBLIC
                             "$<BUILD_INTERFACE:${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}>")
endif()

waywiser_compile_together(waywiser_core)

include(Library)

# Outside a wheel build the compiled parts go beside the Python sources, so that python/ alone is importable.
set(package "${PROJECT_SOURCE_DIR}/python/waywiser")
if(SKBUILD OR NOT WAYWISER_PYTHON)
  set(package "${PROJECT_BINARY_DIR}/waywiser")
endif()

add_custom_target(waywiser_package)
add_dependencies(waywiser_package waywiser)
# Programs that the package starts: the second process of a measurement, a rank of a benchmark.
set(programs peer rank)
if(WAYWISER_CORE_ONLY)
  set(programs peer)
endif()
foreach(program IN LISTS programs)
  add_executable(waywiser-${program} "${${program}_main}")
  target_link_libraries(waywiser-${program} PRIVATE waywiser_core waywiser_warnings)
  set_target_properties(waywiser-${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${package}/bin")
  add_dependencies(waywiser_package waywiser-${program})
  install(TARGETS waywiser-${program} RUNTIME DESTINATION waywiser/bin COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()

# The CUDA driver API for programs that use a remote GPU. It stands alone in its folder, in which only programs that
# `waywiser remote` starts look for libraries. It does without CUDA itself, which would find this library.
file(GLOB_RECURSE without_cuda CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/waywiser/*/no_cuda.cpp")
list(REMOVE_ITEM without_cuda ${core_sources})
set(shim_exported "${PROJECT_SOURCE_DIR}/cmake/shim_exported.map")
waywiser_sources(plugins/cuda_driver shim_sources)
set_source_files_properties("${PROJECT_SOURCE_DIR}/plugins/cuda_driver/not_forwarded.cpp" PROPERTIES
                            SKIP_UNITY_BUILD_INCLUSION ON)  # it defines names that cuda.h declares otherwise
add_library(waywiser_shim SHARED ${shim_sources} ${without_cuda})
target_link_libraries(waywiser_shim PRIVATE waywiser_core waywiser_warnings)
target_link_options(waywiser_shim PRIVATE "LINKER:--version-script=${shim_exported}" LINKER:--gc-sections
                    $<$<NOT:$<BOOL:${WAYWISER_SANITIZE}>>:LINKER:--no-undefined>)
set_target_properties(waywiser_shim PROPERTIES OUTPUT_NAME cuda PREFIX lib SOVERSION 1 LINK_DEPENDS "${shim_exported}"
                      UNITY_BUILD ${WAYWISER_UNITY} UNITY_BUILD_BATCH_SIZE 12
                      LIBRARY_OUTPUT_DIRECTORY "${package}/shim")
add_dependencies(waywiser_package waywiser_shim)
install(TARGETS waywiser_shim LIBRARY DESTINATION waywiser/shim COMPONENT wheel EXCLUDE_FROM_ALL NAMELINK_SKIP)
if(PROJECT_IS_TOP_LEVEL)
  install(TARGETS waywiser_shim LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/waywiser/shim" COMPONENT library NAMELINK_SKIP)
endif()

# The plug-ins of NCCL, each a library of its own on the C interface of libwaywiser.so.
set(nccl "${PROJECT_SOURCE_DIR}/plugins/nccl")
set(nccl_exported "${PROJECT_SOURCE_DIR}/cmake/nccl_exported.map")
set(nccl_tuner_sources tuner.cpp tuned_communicator.cpp way_text.cpp nccl_version.cpp)
set(nccl_env_sources env.cpp node_settings.cpp)
foreach(kind tuner env)
  set(plugin "waywiser_nccl_${kind}")
  list(TRANSFORM nccl_${kind}_sources PREPEND "${nccl}/")
  add_library(${plugin} MODULE ${nccl_${kind}_sources} "${nccl}/agreed_plan.cpp")
  target_link_libraries(${plugin} PRIVATE waywiser waywiser_warnings ${CMAKE_DL_LIBS})
  # NCCL closes it with the last communicator, and the library below it has threads.
  target_link_options(${plugin} PRIVATE LINKER:-z,nodelete "LINKER:--version-script=${nccl_exported}")
  set_target_properties(${plugin} PROPERTIES OUTPUT_NAME "nccl-${kind}-waywiser" PREFIX lib LINK_DEPENDS "${nccl_exported}"
                        LIBRARY_OUTPUT_DIRECTORY "${package}/nccl" INSTALL_RPATH "$ORIGIN/../lib;$ORIGIN/../..")
  add_dependencies(waywiser_package ${plugin})
  install(TARGETS ${plugin} LIBRARY DESTINATION waywiser/nccl COMPONENT wheel EXCLUDE_FROM_ALL)
  if(PROJECT_IS_TOP_LEVEL)
    install(TARGETS ${plugin} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/waywiser/nccl" COMPONENT library)
  endif()
endforeach()

# The back end of NIXL, on the same interface. NIXL ends its threads with the agents, and closes it with the process.
set(nixl_exported "${PROJECT_SOURCE_DIR}/cmake/nixl_exported.map")
file(GLOB nixl_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/nixl/*.cpp")
add_library(waywiser_nixl MODULE ${nixl_sources})
target_link_libraries(waywiser_nixl PRIVATE waywiser waywiser_warnings Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(waywiser_nixl PRIVATE LINKER:-z,nodelete "LINKER:--version-script=${nixl_exported}")
set_target_properties(waywiser_nixl PROPERTIES OUTPUT_NAME plugin_WAYWISER PREFIX lib LINK_DEPENDS "${nixl_exported}"
                      LIBRARY_OUTPUT_DIRECTORY "${package}/nixl" INSTALL_RPATH "$ORIGIN/../lib;$ORIGIN/../..")
add_dependencies(waywiser_package waywiser_nixl)
install(TARGETS waywiser_nixl LIBRARY DESTINATION waywiser/nixl COMPONENT wheel EXCLUDE_FROM_ALL)
if(PROJECT_IS_TOP_LEVEL)
  install(TARGETS waywiser_nixl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/waywiser/nixl" COMPONENT library)
endif()

if(WAYWISER_PYTHON)
  waywiser_python_package(nanobind nanobind_folder)
  find_package(nanobind 3 CONFIG REQUIRED HINTS "${nanobind_folder}/cmake")
  waywiser_sources(python/bindings binding_sources)
  nanobind_add_module(_core STABLE_ABI NB_STATIC NOMINSIZE ${binding_sources})
  target_include_directories(_core PRIVATE "${PROJECT_SOURCE_DIR}/python")
  target_include_directories(_core SYSTEM PRIVATE "${NB_DIR}/include")  # its headers are not warning-free
  target_link_libraries(_core PRIVATE waywiser_core waywiser_warnings)
  # Nothing that is linked into the module is seen by other libraries of the process: some compilers link libstdc++ in,
  # and its locales are those of NumPy's copy then, which ends in a crash.
  target_link_options(_core PRIVATE LINKER:--exclude-libs,ALL)
  waywiser_compile_together(_core <nanobind/nanobind.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>)
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${package}")
  add_dependencies(waywiser_package _core)
  install(TARGETS _core LIBRARY DESTINATION waywiser COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

if(WAYWISER_TESTS)
  include(Tests)
endif()
if(WAYWISER_FUZZ)
  include(Fuzz)
endif()
