# What other programs link, made of the core's objects: libwaywiser.so, libwaywiser.a and what CMake and pkg-config find
# them by. `cmake --install` puts it below its prefix, the wheel below its folder waywiser.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The public headers, besides src/waywiser/waywiser.hpp and c/waywiser.h what these include, and what is needed seldom.
set(public_headers
  waywiser.hpp c/waywiser.h c/waywiser_mpi.h c/waywiser_mpi.hpp
  base/error.hpp base/units.hpp base/version.hpp
  device/place.hpp device/region.hpp device/descriptor.hpp device/memory.hpp device/platform.hpp device/shared_region.hpp
  device/stream.hpp device/virtual_gpu/virtual_machine.hpp
  comm/data_type.hpp comm/elements.hpp comm/schedule.hpp collective/neighbor_exchange/array_part.hpp
  group/future.hpp group/group.hpp group/local_ranks.hpp group/prepared.hpp group/scans.hpp
  group/split_apart.hpp group/taken_message.hpp group/window.hpp
  one_sided.cuh heap/heap.hpp heap/device/terms.hpp heap/device/proxy_ring.hpp heap/device/reached_heap.hpp
  heap/device/stop.hpp
  heap/device/proxied_access.hpp heap/device/transfers.hpp
  heap/device/cuda_bulk.cuh heap/device/cuda_copy.cuh heap/device/lines.hpp heap/device/messages.hpp
  heap/device/one_sided.hpp heap/device/packets.hpp heap/device/combined.hpp heap/device/team_meeting.hpp heap/device/team.hpp
  heap/device/host_heap_block.hpp
  heap/device/cuda_heap_block.cuh kernels/rtc/bit kernels/rtc/cstddef kernels/rtc/cstdint kernels/rtc/type_traits
  kernels/block/cuda_block.cuh kernels/block/host_block.hpp kernels/block/ll128.hpp kernels/block/ll_packet.hpp
  kernels/block/ranks.hpp kernels/block/tag.hpp kernels/block/word_access.hpp kernels/copy_body.hpp device/trap.hpp
  halo/gathered_grid.hpp halo/grid.hpp halo/halo_exchange.hpp halo/partition.hpp halo/tuning.hpp halo/variant.hpp
  offload/array_head.hpp offload/connect.hpp offload/data_road.hpp offload/launch.hpp offload/remote_driver.hpp
  offload/remote_gpu.hpp offload/remote_times.hpp
  storage/file.hpp storage/file_part.hpp storage/file_plan.hpp
  table/arrow_interface.h table/batch.hpp table/shuffle.hpp table/shuffle_counts.hpp table/shuffle_options.hpp
  comm/bootstrap/join_options.hpp comm/bootstrap/launch.hpp comm/bootstrap/unique_id.hpp comm/bootstrap/endpoint.hpp comm/message/on_failure.hpp
  base/secret.hpp kernels/block/half.hpp kernels/block/float8.hpp kernels/device_code.hpp)

# Those whose names other documents list: docs/nvshmem.md, waywiser.numba.
set(headers_of_names
  nvshmem.h heap/nvshmem/nvshmem_host.hpp heap/nvshmem/nvshmem_terms.hpp heap/nvshmem/here.cuh heap/nvshmem/setup.cuh
  heap/nvshmem/transfers.cuh heap/nvshmem/waits.cuh heap/nvshmem/atomics.cuh heap/nvshmem/collectives.cuh
  heap/nvshmem/refused.cuh heap/device/c_functions.cuh)

set(soname_version "${PROJECT_VERSION_MAJOR}")
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(soname_version "0.${PROJECT_VERSION_MINOR}")  # before 1.0.0 each minor version may change the interface
endif()

set(fortran_module "${PROJECT_BINARY_DIR}/package/waywiser.f90")
set(module_sources "${PROJECT_SOURCE_DIR}/cmake/fortran_module.py" "${PROJECT_SOURCE_DIR}/src/waywiser/c/waywiser.h"
                   "${PROJECT_SOURCE_DIR}/src/waywiser/c/waywiser.f90.in")
add_custom_command(OUTPUT "${fortran_module}" DEPENDS ${module_sources}
                   COMMAND "${Python_EXECUTABLE}" ${module_sources} "${fortran_module}" VERBATIM)
set_source_files_properties("${fortran_module}" PROPERTIES HEADER_FILE_ONLY TRUE)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(waywiser_FORTRAN_MODULE "${fortran_module}" CACHE INTERNAL "To be compiled with a Fortran program")
endif()

add_library(waywiser SHARED "${PROJECT_BINARY_DIR}/package/no_code.cpp" "${fortran_module}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/package/no_code.cpp" CONTENT "")  # all of it is the core's
set(exported "${PROJECT_SOURCE_DIR}/cmake/exported.map")
target_link_libraries(waywiser PRIVATE $<BUILD_LOCAL_INTERFACE:$<LINK_LIBRARY:WHOLE_ARCHIVE,waywiser_core>>)
target_link_options(waywiser PRIVATE "LINKER:--version-script=${exported}")
set_target_properties(waywiser PROPERTIES SOVERSION "${soname_version}" LINK_DEPENDS "${exported}")
set_target_properties(waywiser_core PROPERTIES OUTPUT_NAME waywiser EXPORT_NAME waywiser_static)
foreach(target waywiser waywiser_core)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()
target_include_directories(waywiser INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>")
add_library(waywiser::waywiser ALIAS waywiser)
add_library(waywiser::waywiser_static ALIAS waywiser_core)

write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/waywiserConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)

# Installs it all below `root`, a folder in the prefix. `kind` names the component; the rest goes to install().
function(waywiser_install_library kind root libraries headers)
  set(cudart_folder "")
  set(cuda_runtime "")
  set(component COMPONENT ${kind} ${ARGN})
  set(targets waywiser)
  if(kind STREQUAL "library")
    list(APPEND targets waywiser_core)  # too much for a wheel
    if(WAYWISER_WITH_CUDA)
      find_library(WAYWISER_CUDART cudart_static REQUIRED HINTS "${cuda_root}/lib64" "${cuda_root}/lib" NO_DEFAULT_PATH)
      get_filename_component(cudart_folder "${WAYWISER_CUDART}" DIRECTORY)
      set(cuda_runtime "-L${cudart_folder} -lcudart_static ")
    endif()
  else()
    set(namelink NAMELINK_SKIP)  # a wheel has no symbolic links
  endif()
  install(TARGETS ${targets} EXPORT waywiser_${kind}
          LIBRARY DESTINATION "${root}${libraries}" ${component} ${namelink}
          ARCHIVE DESTINATION "${root}${libraries}" ${component}
          INCLUDES DESTINATION "${root}${headers}")
  foreach(header IN LISTS public_headers headers_of_names)
    get_filename_component(folder "${header}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/src/waywiser/${header}" DESTINATION "${root}${headers}/waywiser/${folder}" ${component})
  endforeach()
  install(FILES "${fortran_module}" DESTINATION "${root}${headers}/waywiser/c" ${component})
  if(kind STREQUAL "wheel")  # so what linkers and dlopen find by libwaywiser.so is a copy, made once it is stripped
    set(folder "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${root}${libraries}")
    install(CODE "file(COPY_FILE \"${folder}/libwaywiser.so.${soname_version}\" \"${folder}/libwaywiser.so\")" ${component})
  endif()

  set(package "${root}${libraries}/cmake/waywiser")
  set(made "${PROJECT_BINARY_DIR}/package/${kind}")
  set(module "${root}${headers}/waywiser/c/waywiser.f90")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/waywiserConfig.cmake.in" "${made}/waywiserConfig.cmake"
                                INSTALL_DESTINATION "${package}" PATH_VARS module)
  install(FILES "${made}/waywiserConfig.cmake" "${PROJECT_BINARY_DIR}/package/waywiserConfigVersion.cmake"
          DESTINATION "${package}" ${component})
  install(EXPORT waywiser_${kind} FILE waywiserTargets.cmake NAMESPACE waywiser:: DESTINATION "${package}" ${component})

  file(RELATIVE_PATH up "/${root}${libraries}/pkgconfig" "/${root}")
  foreach(name waywiser waywiser-cpp)  # a compiler of C refuses what one of C++ needs
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${made}/${name}.pc" @ONLY)
    install(FILES "${made}/${name}.pc" DESTINATION "${root}${libraries}/pkgconfig" ${component})
  endforeach()
endfunction()

if(PROJECT_IS_TOP_LEVEL)
  waywiser_install_library(library "" "${CMAKE_INSTALL_LIBDIR}" "${CMAKE_INSTALL_INCLUDEDIR}")
  waywiser_install_library(wheel waywiser/ lib include EXCLUDE_FROM_ALL)
endif()
