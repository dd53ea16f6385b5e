# Runs the protocols under every schedule (tests/explorer). What is explored is compiled once more for it, in two ways;
# the core has nothing of either.
set(comm "${PROJECT_SOURCE_DIR}/src/waywiser/comm")
set(tests "${PROJECT_SOURCE_DIR}/tests/explorer")
# All files of a class: the explorer does not see the accesses of one that is left out.
file(GLOB messages CONFIGURE_DEPENDS "${comm}/shared_memory/mailbox_*.cpp")
file(GLOB executions CONFIGURE_DEPENDS "${comm}/session/execution*.cpp")
file(GLOB rendezvous CONFIGURE_DEPENDS "${comm}/rendezvous/*.cpp")

# As for the thread sanitizer, whose place the explorer takes: it is told of each access to memory. Not as for that
# sanitizer's own programs, whose ranks are threads with mailboxes at two addresses.
add_library(explored_memory OBJECT "${tests}/explorer_test.cpp" "${tests}/mailbox_test.cpp"
                                   ${messages} "${comm}/shared_memory/shared_copy.cpp")
target_compile_options(explored_memory PRIVATE -fsanitize=thread -U__SANITIZE_THREAD__
                                               $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)

# On a session of the explorer's, whose header stands in front of the real one. Its classes, and those that are made of
# them, have names of their own: the core has others.
add_library(explored_activities OBJECT "${tests}/execution_test.cpp" "${tests}/rendezvous_test.cpp"
                                       "${tests}/windows_test.cpp" ${executions} ${rendezvous}
                                       "${comm}/windows/host_window.cpp")
target_include_directories(explored_activities BEFORE PRIVATE "${tests}/doubles")
foreach(class Session Engine RankGpus RtsNumbers PeerMemory GpuConnections Execution Transfer ChunkMessages
              ChunkedMessage GpuReceive RendezvousReceive RendezvousSend HostWindow OneSidedTransfer UcxMemory
              UcxRemoteMemory)
  target_compile_definitions(explored_activities PRIVATE ${class}=Explored${class})
endforeach()

add_executable(waywiser_explorer
  "${tests}/explorer.cpp" "${tests}/shared_regions.cpp" "${tests}/instrumentation.cpp" "${tests}/machine.cpp"
  "${tests}/network.cpp" "${tests}/one_sided.cpp" "${tests}/kernels_test.cpp"
  "${PROJECT_SOURCE_DIR}/tests/collective/made_up_call.cpp"
  $<TARGET_OBJECTS:explored_memory> $<TARGET_OBJECTS:explored_activities>)
foreach(target explored_memory explored_activities waywiser_explorer)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(${target} PRIVATE ${test_options})
  target_link_libraries(${target} PRIVATE waywiser_warnings waywiser_json_headers waywiser_ucx_headers)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WAYWISER_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endforeach()
target_link_libraries(waywiser_explorer PRIVATE waywiser_core GTest::gtest GTest::gtest_main)
# The core's own of what is in explored_memory is left out.
target_link_options(waywiser_explorer PRIVATE LINKER:-z,muldefs,--wrap=memcpy,--wrap=memmove,--wrap=memset)
add_dependencies(waywiser_slow_tests waywiser_explorer)
