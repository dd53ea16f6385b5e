#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Where ranks of one machine find each other: a socket in the runtime folder, named after the job.
std::filesystem::path meeting_path(const std::string& job);

// By rank 0. A socket of an earlier job of the same name is replaced; this one's name goes with this object.
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

// By the others: nothing while nobody listens. Throws io when it is another user who does.
class MeetingVisit {
 public:
  explicit MeetingVisit(const std::string& job);

  bool open() const noexcept { return line_.open(); }
  Descriptor take_line() noexcept { return std::move(line_); }
  // Another rank 0 has come since.
  bool is_outdated() const;

 private:
  std::filesystem::path path_;
  struct stat facts_{};
  Descriptor line_;
};

}  // namespace waywiser
