#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// The socket in the runtime folder, named after the job, at which ranks of one machine meet.
std::filesystem::path meeting_path(const std::string& job);

// Rank 0's side. It replaces the socket of an earlier job with the same name; the destructor removes the name.
class MeetingSocket {
 public:
  explicit MeetingSocket(const std::string& job);  // throws io
  MeetingSocket(const MeetingSocket&) = delete;
  MeetingSocket& operator=(const MeetingSocket&) = delete;
  ~MeetingSocket();

  Descriptor take_listener() noexcept { return std::move(listener_); }

 private:
  std::filesystem::path path_;
  struct stat facts_{};
  Descriptor listener_;
};

// The other ranks' side. Empty while nobody listens. Throws io if another user listens.
class MeetingVisit {
 public:
  explicit MeetingVisit(const std::string& job);

  bool open() const noexcept { return line_.open(); }
  Descriptor take_line() noexcept { return std::move(line_); }
  // Another rank 0 has come meanwhile.
  bool is_outdated() const;

 private:
  std::filesystem::path path_;
  struct stat facts_{};
  Descriptor line_;
};

}  // namespace waywiser
