#pragma once

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {

class Rendezvous : public WithRuntimeFolder {
 protected:
  static Launch launch(int rank, int size) { return {"test", rank, size, "test-job", {}, "a secret of the test"}; }
  static Introduction introduction(const Launch& launch) {
    Introduction mine{static_cast<std::uint32_t>(launch.rank),
                      static_cast<std::uint32_t>(launch.size),
                      "1",
                      "plan",
                      "",
                      "here",
                      1,
                      {},
                      false,
                      "",
                      ""};
    mine.ucx = launch.rank == 0 ? "1.13.1" : "1.13.2";
    mine.address.resize(100, static_cast<std::byte>(launch.rank));
    return mine;
  }
  static std::future<Muster> come(const Launch& launch, const Introduction& mine, Seconds patience = 20) {
    return std::async(std::launch::async, [=] { return meet(launch, mine, Deadline::in(patience)); });
  }
  static std::future<Muster> come(int rank, int size) {
    return come(launch(rank, size), introduction(launch(rank, size)));
  }
  // None goes before all have come: those below a rank come to it after it has come itself.
  static std::vector<Muster> all(std::vector<std::future<Muster>> ranks) {
    std::vector<Muster> come;
    for (auto& rank : ranks) come.push_back(rank.get());
    return come;
  }
  static std::string complaint(std::future<Muster> future) {
    try {
      future.get();
    } catch (const Error& error) {
      return error.what();
    }
    return "no complaint";
  }
  // Rank 0 at an address, where it listens as soon as this returns.
  static std::future<Muster> come_as_root(int size, Endpoint& root, Seconds patience = 20) {
    auto listens = std::make_shared<std::promise<Endpoint>>();
    auto future = std::async(std::launch::async, [=] {
      const auto announce = [&](const Endpoint& here) { listens->set_value(here); };
      return meet(launch_at({}, 0, size), introduction(launch(0, size)), Deadline::in(patience), announce);
    });
    root = listens->get_future().get();
    return future;
  }
  static Launch launch_at(const Endpoint& root, int rank, int size) {
    Launch at = launch(rank, size);
    at.root = root;
    return at;
  }
  static std::future<Muster> come_at(const Endpoint& root, int rank, int size, Seconds patience = 20) {
    return come(launch_at(root, rank, size), introduction(launch(rank, size)), patience);
  }
  // Connects to the socket of the job as soon as rank 0 listens.
  static Descriptor visit_root() {
    for (const Deadline deadline = Deadline::in(10); !deadline.passed(); std::this_thread::yield())
      if (Descriptor line = connect_at(meeting_path("test-job")); line.open()) return line;
    throw Error(ErrorKind::timeout, "there is no rank 0");
  }
  static Frame hello_of(int rank) {
    return {FrameKind::hello, hello_bytes({protocol_version, static_cast<std::uint32_t>(rank), random_nonce()})};
  }
};

}  // namespace waywiser
