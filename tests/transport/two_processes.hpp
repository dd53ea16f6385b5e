#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Forks a peer that runs `child` on the other end of a channel; it exits with 0 when `child` returns true and none of
// its expectations failed.
class ForkedPeer {
 public:
  explicit ForkedPeer(const std::function<bool(PeerChannel&)>& child) {
    auto [mine, theirs] = PeerChannel::socket_pair();
    process_ = ::fork();
    if (process_ == 0) {
      mine = Descriptor();
      ::_exit(run(child, std::move(theirs)));
    }
    channel_ = std::make_unique<PeerChannel>(std::move(mine));
  }
  ForkedPeer(const ForkedPeer&) = delete;
  ForkedPeer& operator=(const ForkedPeer&) = delete;
  ~ForkedPeer() {
    channel_.reset();
    if (process_ > 0) wait();
  }

  PeerChannel& channel() { return *channel_; }
  void hang_up() { channel_.reset(); }
  pid_t process() const { return process_; }
  // The exit status of waitpid.
  int wait() {
    int status = -1;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return status;
  }

 private:
  static int run(const std::function<bool(PeerChannel&)>& child, Descriptor socket) {
    try {
      PeerChannel channel(std::move(socket));
      return child(channel) && !testing::Test::HasFailure() ? 0 : 1;
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "forked peer: %s\n", problem.what());
      return 2;
    }
  }

  pid_t process_ = -1;
  std::unique_ptr<PeerChannel> channel_;
};

}  // namespace waywiser
