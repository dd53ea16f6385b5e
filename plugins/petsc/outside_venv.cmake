# PETSc's MPI is not that of a Python environment in PATH, whose mpicxx FindMPI would take, unless PETSc is there, too.
cmake_path(CONVERT "$ENV{PATH}" TO_CMAKE_PATH_LIST folders NORMALIZE)
foreach(folder IN LISTS folders)
  cmake_path(GET folder PARENT_PATH environment)
  cmake_path(IS_PREFIX environment "${PETSC_PREFIX}" NORMALIZE has_petsc)
  if(EXISTS "${environment}/pyvenv.cfg" AND NOT has_petsc)
    list(APPEND CMAKE_IGNORE_PATH "${folder}")
  endif()
endforeach()
