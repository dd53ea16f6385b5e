# Header-only needs, from the system or from the Python packages that carry them. No third-party library is linked:
# UCX, NVML, hwloc and GDRCopy are opened at run time.
function(waywiser_headers target header package hint)
  waywiser_python_package(${package} folder)
  find_path(${target}_INCLUDE_DIR "${header}" HINTS "${folder}/include" NO_CACHE)
  if(NOT ${target}_INCLUDE_DIR)
    message(FATAL_ERROR "waywiser: ${header} is missing: ${hint}")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE "${${target}_INCLUDE_DIR}")
  message(STATUS "waywiser: ${header} from ${${target}_INCLUDE_DIR}")
endfunction()

waywiser_headers(waywiser_json_headers nlohmann/json.hpp nlohmann_json
                 "pip install nlohmann-json, or apt-get install nlohmann-json3-dev")
waywiser_headers(waywiser_ucx_headers ucp/api/ucp.h libucx "pip install libucx-cu13, or apt-get install libucx-dev")
