# Sets `result` to the folder of a Python package that Python_EXECUTABLE can import, or to the empty string.
function(waywiser_python_package name result)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; s = u.find_spec('${name}'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()
