# Runs the protocols under every schedule (tests/explorer). The files that are explored are compiled once more here, as
# for the thread sanitizer: what it is told of each access the explorer is told. The core itself has nothing of it.
file(GLOB explorer_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/explorer/*.cpp")
set(explored_scenarios ${explorer_sources})
list(FILTER explored_scenarios INCLUDE REGEX "(explorer|mailbox|kernels)_test\\.cpp$")
list(REMOVE_ITEM explorer_sources ${explored_scenarios})

set(comm "${CMAKE_SOURCE_DIR}/src/waywiser/comm")
add_library(explored_memory OBJECT ${explored_scenarios} "${comm}/shared_memory/mailbox_messages.cpp"
                                   "${comm}/shared_memory/shared_copy.cpp")
# Not as for that sanitizer's own programs, whose ranks are threads with mailboxes at two addresses.
target_compile_options(explored_memory PRIVATE -fsanitize=thread -U__SANITIZE_THREAD__
                                               $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)

# Activities on a network of the explorer's: its session stands in front of the real one's header.
add_library(explored_activities OBJECT "${CMAKE_SOURCE_DIR}/tests/collective/made_up_call.cpp"
                                       "${comm}/session/execution.cpp")

add_executable(waywiser_explorer ${explorer_sources})
target_sources(waywiser_explorer PRIVATE $<TARGET_OBJECTS:explored_memory> $<TARGET_OBJECTS:explored_activities>)
foreach(target explored_memory explored_activities waywiser_explorer)
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE -O1)
endforeach()
foreach(target explored_activities waywiser_explorer)
  target_include_directories(${target} BEFORE PRIVATE "${CMAKE_SOURCE_DIR}/tests/explorer/doubles")
endforeach()
foreach(target explored_memory explored_activities)
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:waywiser_core,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target} PRIVATE waywiser_warnings waywiser_json_headers waywiser_ucx_headers)
endforeach()
target_link_libraries(waywiser_explorer PRIVATE waywiser_core waywiser_warnings GTest::gtest GTest::gtest_main)
# What is explored comes first, and the core's own of the same name is left out.
target_link_options(waywiser_explorer PRIVATE LINKER:-z,muldefs,--wrap=memcpy,--wrap=memmove,--wrap=memset)
add_dependencies(waywiser_tests waywiser_explorer)
